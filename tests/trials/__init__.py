"""Tests of webhookrx.trials."""
