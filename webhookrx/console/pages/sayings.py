"""
What pages say first, after a form was sent: sentences by a word in the query, so that no link can say another.
"""

from __future__ import annotations

from typing import Final

SAID: Final = "said"
"""The name in the query."""

SAYINGS: Final = {
    "signed-out": "You are signed out.",
    "first-admin": "You are the first admin. Sign in.",
    "rule-rolled-back": "The rule is what it was; its routers get it now.",
    "rules-replaced": "The rules are what the file says; their routers get them now.",
}
