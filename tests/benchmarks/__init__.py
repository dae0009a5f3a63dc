"""Tests for benchmarks."""
