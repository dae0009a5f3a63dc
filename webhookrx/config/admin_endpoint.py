"""
Where health and metrics are asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from webhookrx.config.endpoint_strings import Address, EndpointString, parse_endpoint
from webhookrx.config.values import Values
from webhookrx.diagnostics import quoted
from webhookrx.errors import ConfigError
from webhookrx.settings import Listener

#: What an address is when none is said: only this machine.
_LOOPBACK = "interface=127.0.0.1"


def admin_listener(values: Values, taken: Iterable[Listener]) -> Listener | None:
    """
    Return the endpoint of the option C{admin}; None without it. What is wrong is noted.

    @param taken: what the sources listen on.
    """
    texts = values.texts("admin")
    endpoint = values.problems.attempt(values.place("admin"), _parse, texts[0].text) if texts else None
    values.show("admin", endpoint.text if endpoint else "none")
    if endpoint is None:
        return None
    place = values.place("admin")
    for listener in taken:
        if _overlap(parse_endpoint(listener.inner).address, endpoint.address):
            values.problems.error(
                f"Senders use {quoted(listener.text)}, which takes the same address as {quoted(endpoint.text)}.",
                place,
            )
    if not endpoint.local:
        values.problems.warn(
            f"Whoever reaches {quoted(endpoint.text)} can read health and metrics; nobody is asked for a token there.",
            place,
        )
    return Listener(endpoint.text, endpoint.inner, endpoint.proxy_protocol)


def _overlap(one: Address, other: Address) -> bool:
    # Port 0 is any free one, so that two of them are two.
    return one.overlaps(other) and not (one.family == "tcp" and one.port == 0)


def _parse(text: str) -> EndpointString:
    """
    @raise ConfigError: it is no endpoint, or one that speaks TLS or the PROXY protocol.
    """
    wanted = text
    if re.fullmatch(r"[0-9]+", text):
        wanted = f"tcp:{text}:{_LOOPBACK}"
    elif text.startswith("tcp:") and "interface=" not in text:
        wanted = f"{text}:{_LOOPBACK}"
    endpoint = parse_endpoint(wanted)
    if endpoint.tls is not None or endpoint.proxy_protocol:
        raise ConfigError(
            f"{quoted(text)}: health and metrics are plain HTTP; it takes tcp:, tcp6:, unix: or systemd:."
        )
    return endpoint
