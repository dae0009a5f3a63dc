"""Tests for L{webhookrx.senders.signatures}."""
