"""Tests for L{webhookrx.tapping}."""
