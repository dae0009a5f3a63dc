"""
Tests for L{webhookrx.console.api}.
"""
