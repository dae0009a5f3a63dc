"""
YAML files read by type: every mistake in one pass, each with its position.

A file is read as nodes and never as Python values, so that C{name: 0123} stays a text where a text is wanted. It may be
hostile: its size, its depth, and its nodes with aliases followed are bounded.
"""

from __future__ import annotations

from webhookrx.typed_yaml.nodes import LARGEST
from webhookrx.typed_yaml.reading import Reading, read_typed

__all__ = ["LARGEST", "Reading", "read_typed"]
