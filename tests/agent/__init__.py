"""Tests for L{webhookrx.agent}."""
