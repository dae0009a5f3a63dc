"""
YAML files that people write, read by the types of what they hold: every mistake in one pass, each with its place.

The file is read as a tree of nodes and never as Python values, so that C{name: 0123} stays what was written where a
text is wanted. It may be hostile: its size, its depth, and what its aliases stand for are bounded.
"""

from __future__ import annotations

from webhookrx.typed_yaml.nodes import LARGEST
from webhookrx.typed_yaml.reading import Reading, read_typed

__all__ = ["LARGEST", "Reading", "read_typed"]
