"""
All pages of the console, joined from those of each module.
"""

from __future__ import annotations

from typing import Final

from webhookrx.console.pages import (
    activity,
    alarms,
    analytics,
    enrolments,
    overview,
    revision,
    router_page,
    routers,
    rule_editor,
    rule_history,
    rule_preview,
    rule_try,
    rules,
    rules_file,
    settings_about,
    settings_account,
    settings_kept,
    settings_people,
    settings_tabs,
    settings_tokens,
    sign_in,
    sign_in_oidc,
    tap,
)
from webhookrx.console.pages.page import PageRoute

PAGES: Final[tuple[PageRoute, ...]] = (
    *overview.ROUTES,
    *routers.ROUTES,
    *router_page.ROUTES,
    *enrolments.ROUTES,
    *rules.ROUTES,
    *rules_file.ROUTES,
    *rule_history.ROUTES,
    *rule_try.ROUTES,
    *rule_editor.ROUTES,
    *rule_preview.ROUTES,
    *tap.ROUTES,
    *analytics.ROUTES,
    *alarms.ROUTES,
    *activity.ROUTES,
    *revision.ROUTES,
    *settings_tabs.ROUTES,
    *settings_account.ROUTES,
    *settings_people.ROUTES,
    *settings_tokens.ROUTES,
    *settings_kept.ROUTES,
    *settings_about.ROUTES,
    *sign_in.ROUTES,
    *sign_in_oidc.ROUTES,
)
