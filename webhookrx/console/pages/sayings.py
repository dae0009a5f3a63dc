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
    "rule-saved": "The rule is saved. Routers that are online get it now.",
    "rule-deleted": "The rule is deleted.",
    "rule-rolled-back": "The rule is what it was; its routers get it now.",
    "rules-rolled-back": "All rules are what they were at that revision; their routers get them now.",
    "rules-replaced": "The rules are what the file says; their routers get them now.",
    "alarm-saved": "The alarm is saved; the console looks at once.",
    "alarm-deleted": "The alarm is deleted.",
    "alarm-rolled-back": "The alarm is what it was.",
    "alarm-target-saved": "The target is saved.",
    "alarm-target-deleted": "The target is deleted.",
    "router-approved": "The router is approved. It asks for its rules within a minute.",
    "router-disabled": "The router is disabled.",
    "router-forgotten": "The router is forgotten.",
    "router-changed": "Name and labels are saved.",
    "router-reloaded": "The router has reloaded.",
    "enrolment-deleted": "The enrolment is deleted: its token is good for nothing.",
    "first-rule": "The rule is saved. Routers get it at once.",
    "password-changed": "Your password is changed, and your other sessions have ended.",
    "session-ended": "The session has ended.",
    "token-removed": "The API token is removed: what uses it is refused from now on.",
    "person-added": "The person is added, and can sign in.",
    "person-changed": "The person is changed, and their sessions have ended.",
    "person-removed": "The person is removed, with sessions and API tokens.",
    "own-rights-changed": "You have changed your own rights, which ends your sessions. Sign in again.",
    "own-password-changed": "You have changed your own password here, which ends all sessions. Sign in again.",
    "own-account-removed": "You have removed your own account.",
    "masks-saved": "The masks are saved. Routers that are online get them now.",
    "retention-saved": "It is saved. What is too old goes within some minutes.",
}
