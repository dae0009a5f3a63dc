"""Tests for L{webhookrx.console.alarms}."""
