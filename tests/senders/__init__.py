"""Tests for L{webhookrx.senders}."""
