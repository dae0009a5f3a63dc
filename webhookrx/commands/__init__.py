"""What people do beside a receiver: a module for each subject of the command C{webhookrx}."""
