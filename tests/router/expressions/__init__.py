"""Tests for the language of expression steps."""
