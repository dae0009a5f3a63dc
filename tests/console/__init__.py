"""
Tests for L{webhookrx.console}.
"""
