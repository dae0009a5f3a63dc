"""
What all types of a sender's data file have in common.
"""

from __future__ import annotations

import msgspec


class DataFileType(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Nothing in the file is ignored: an unknown member is an error."""
