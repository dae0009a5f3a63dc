"""Tests for L{webhookrx.senders.handshakes}."""
