"""
What C{--check} prints.
"""

from __future__ import annotations

from collections.abc import Sequence

from webhookrx.config.options import OPTIONS
from webhookrx.config.resolve import Resolved
from webhookrx.config.values import Effective
from webhookrx.quantities import format_size
from webhookrx.settings import PROMPT_BODY, TLS, Listener

_ORDER = {option.name: number for number, option in enumerate(OPTIONS)}


def check_report(resolved: Resolved) -> str:
    """Return every setting with its origin, the endpoints as they will be, and the warnings. Secrets are C{***}."""
    lines = ["service", *_columns(resolved.effective, ""), ""]
    for source in resolved.settings.sources:
        lines += [f"source {source.name}", *_columns(resolved.effective, source.name)]
        lines += [f"  listens on {_listener(listener)}" for listener in source.listeners]
        lines.append("")
    lines.append(_delay(resolved.settings.limits.body))
    lines += [f"warning: {warning}" for warning in resolved.settings.warnings]
    if resolved.settings.blocked:
        lines.append("The configuration is good, but the router is blocked: nothing changes before that is mended.")
    else:
        lines.append("The configuration is good.")
    return "\n".join(lines)


def _delay(body: int) -> str:
    """Say for how long one body may hold up other senders."""
    line = f"No body of up to {format_size(min(body, PROMPT_BODY))} holds up other senders for more than 50 ms"
    return f"{line}." if body <= PROMPT_BODY else f"{line}; larger ones may."


def error_lines(text: str) -> str:
    """Return what is wrong with a configuration as it is printed, one line each."""
    return "\n".join(f"error: {line}" for line in text.splitlines())


def error_report(text: str) -> str:
    """Return what C{--check} prints when something is wrong."""
    return f"{error_lines(text)}\nThe configuration can't be used."


def _columns(effective: Sequence[Effective], section: str) -> list[str]:
    rows = sorted(
        (row for row in effective if row.section == section), key=lambda row: _ORDER.get(row.name, len(_ORDER))
    )
    names = max(len(row.name) for row in rows)
    values = min(max(len(row.value) for row in rows), 60)
    return [f"  {row.name:{names}}  {row.value:{values}}  ({row.origin})" for row in rows]


def _listener(listener: Listener) -> str:
    proxy = ", behind a PROXY header" if listener.proxy_protocol else ""
    return f"{listener.inner}{proxy}, {'plain HTTP' if listener.tls is None else _tls(listener.tls)}"


def _tls(tls: TLS) -> str:
    files = [f"key {tls.key_file}", f"certificate {tls.cert_file}"]
    if tls.extra_chain_file is not None:
        files.append(f"chain {tls.extra_chain_file}")
    if not tls.peer_verify:
        return f"TLS with {', '.join(files)}; no client certificate is asked for"
    trust = [path for path in (tls.ca_file, tls.ca_dir, "the system's store" if tls.system_store else None) if path]
    return f"TLS with {', '.join(files)}; clients need a certificate that {' or '.join(trust)} vouches for"
