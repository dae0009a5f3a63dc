"""Tests for L{webhookrx.router}."""
