"""
The routes of settings that admins change while the console runs.
"""

from __future__ import annotations

from typing import Final

from webhookrx.console.api.etags import etag_number
from webhookrx.console.api.principal import Permission
from webhookrx.console.api.route import Answer, ApiCall, ApiRoute
from webhookrx.console.own_settings.saved_setting import MASKS, RETENTION
from webhookrx.console.own_settings.setting_types import MaskSetting, RetentionSetting
from webhookrx.console.people.accounts import author


async def show_masks(call: ApiCall) -> Answer:
    """Return the masks."""
    return _answer(call, MASKS)


async def save_masks(call: ApiCall) -> Answer:
    """Save the masks."""
    await call.console.live.save_masks(author(call.caller), etag_number(call, "g"), call.body)
    return _answer(call, MASKS)


async def show_retention(call: ApiCall) -> Answer:
    """Return for how long what is kept."""
    return _answer(call, RETENTION)


async def save_retention(call: ApiCall) -> Answer:
    """Save for how long what is kept."""
    await call.console.live.save_retention(author(call.caller), etag_number(call, "g"), call.body)
    return _answer(call, RETENTION)


def _answer(call: ApiCall, name: str) -> Answer:
    live = call.console.live
    return Answer(live.masks if name == MASKS else live.retention, etag=f"g{live.generations[name]}")


ROUTES: Final = (
    ApiRoute(
        "GET",
        "/settings/masks",
        Permission.VIEW,
        show_masks,
        "The names of members that taps of all routers mask, besides those that they mask anyway.",
        answer=MaskSetting,
    ),
    ApiRoute(
        "PUT",
        "/settings/masks",
        Permission.ADMINISTER,
        save_masks,
        "Change the names that taps mask; all routers get them.",
        MaskSetting,
        MaskSetting,
        needs_if_match=True,
    ),
    ApiRoute(
        "GET",
        "/settings/retention",
        Permission.VIEW,
        show_retention,
        "For how many seconds counts are kept, and how many entries of the audit.",
        answer=RetentionSetting,
    ),
    ApiRoute(
        "PUT",
        "/settings/retention",
        Permission.ADMINISTER,
        save_retention,
        "Change for how long counts and the audit are kept.",
        RetentionSetting,
        RetentionSetting,
        needs_if_match=True,
        body_limit=2048,
    ),
)
