"""Tests for L{webhookrx.console.taps}."""
