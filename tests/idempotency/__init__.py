"""Tests for L{webhookrx.idempotency}."""
