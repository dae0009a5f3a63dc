"""Tests for L{webhookrx.management}."""
