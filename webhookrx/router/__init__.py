"""The router form: connectors from connector rules."""
