"""Tests of webhookrx.relay."""
