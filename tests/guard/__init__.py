"""Tests for L{webhookrx.guard}."""
