"""
Tests for L{webhookrx.console.people}.
"""
