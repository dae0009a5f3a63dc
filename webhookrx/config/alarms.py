"""
The alarms of a configuration file, and the targets that are told of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from webhookrx.config.alarm_items import AlarmWords, check_name, read_alarm
from webhookrx.config.option_reader import ConfigFile, Effective, OptionReader, Problems, RawValue
from webhookrx.errors import ConfigError
from webhookrx.management.alarm_rules import MOST_RULES, MOST_TARGETS, AlarmRule, AlarmSettings, AlarmTarget
from webhookrx.quantities import format_duration

FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "silent": ("source", "sender", "rule", "port", "product", "vendor", "label.KEY"),
    "refused": ("source", "reason", "rule", "port", "product", "vendor", "label.KEY"),
    "gate_closed": (),
    "certificate": ("file",),
    "spool": ("observer",),
}
"""The fields that the query of an alarm of each kind may test."""

_WORDS: Final = AlarmWords(FIELDS)
LONGEST_URL: Final = 2048


def read_alarms(file: ConfigFile, service: OptionReader) -> AlarmSettings:
    """Return the alarms of a file; what is wrong is noted."""
    problems = service.problems
    targets = _targets(file.alarm_targets, problems)
    rules: dict[str, AlarmRule] = {}
    if len(file.alarms) > MOST_RULES:
        problems.error(f"There are up to {MOST_RULES} alarms, and these are {len(file.alarms)}.", file.alarms[0].origin)
        return AlarmSettings()
    for raw in file.alarms:
        rule = read_alarm(raw, _WORDS, file.alarm_targets, problems)
        if rule is None:
            continue
        if rule.name in rules:
            problems.error(f"Another alarm has the name {rule.name}.", raw.values["name"].origin)
        rules[rule.name] = rule
        shown = f"{rule.kind} for {format_duration(rule.seconds)}{f', tells {rule.notify}' if rule.notify else ''}"
        service.effective.append(Effective("", f"alarm {rule.name}", shown, str(raw.origin)))
    used = {rule.notify for rule in rules.values()}
    for name, value in file.alarm_targets.items():
        if name not in used:
            problems.warn("No alarm tells it.", value.origin)
    return AlarmSettings(tuple(rules.values()), targets)


def _targets(raw: Mapping[str, RawValue], problems: Problems) -> tuple[AlarmTarget, ...]:
    targets: list[AlarmTarget] = []
    for name, value in raw.items():
        if len(targets) >= MOST_TARGETS:
            problems.error(f"There are up to {MOST_TARGETS} targets.", value.origin)
            break
        problems.attempt(value.origin, check_name, name)
        problems.attempt(value.origin, check_target_url, value.text)
        targets.append(AlarmTarget(name, value.text))
    return tuple(targets)


def check_target_url(url: str) -> None:
    """
    Check the URL of a target. No error quotes it: it may hold a secret.

    @raise ConfigError: it can't be one.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ConfigError("It is no URL.") from None
    if not url.isascii() or not url.isprintable() or " " in url or len(url) > LONGEST_URL:
        raise ConfigError(f"A URL is up to {LONGEST_URL} ASCII characters without blanks.")
    if parts.scheme not in ("http", "https") or not host or port == 0:
        raise ConfigError("It takes a URL such as https://alerts.example.com/hook.")
    if "@" in parts.netloc or parts.fragment:
        raise ConfigError("A URL here has no user, no password and no fragment.")
    try:
        address = ip_address(host)
    except ValueError:
        return
    if address.is_link_local:
        raise ConfigError("Link-local addresses are never told of alarms: metadata services of clouds have them.")
