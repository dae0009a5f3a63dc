"""Tests for L{webhookrx.connectors}."""
