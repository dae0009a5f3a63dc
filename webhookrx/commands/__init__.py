"""The command C{webhookrx}: a module for each of its subjects."""
