"""
Joining a console: an enrolment from the first look at the directory to the identity in it, which may be asked again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from webhookrx.agent.enrolment import Enrolled, enrol
from webhookrx.agent.router_keys import KeyRequest, new_key, request_for
from webhookrx.config.console_files import read_console_files, write_identity
from webhookrx.config.started_enrolment import StartedEnrolment, end_started, keep_started, started_key
from webhookrx.management.agent_protocol import RouterFacts
from webhookrx.management.enrolment_token import EnrolmentToken

_T = TypeVar("_T")


class OnDisk(Protocol):
    """Does what reads or writes the directory, such as in a thread."""

    def __call__(self, call: Callable[..., _T], *args: object) -> Awaitable[_T]: ...


async def join_console(
    reactor: Any, on_disk: OnDisk, directory: str, url: str, token: EnrolmentToken, facts: RouterFacts, name: str = ""
) -> Enrolled:
    """
    Enrol a router, and keep who it is. The key is on disk before the token is sent, so whatever is lost on the way,
    calling this again with the same token ends the same enrolment, for as long as the console takes the token.

    An identity that is there already stays.

    @param directory: see L{webhookrx.config.console_files}.
    @param url: that of the console's port for routers.
    @param name: what the router would like to be called; empty for the name of its host.
    @raise NotEnrolled: see L{enrol}.
    @raise ConfigError: what is in the directory can't be used.
    @raise OSError: something can't be kept.
    """
    kept = (await on_disk(read_console_files, directory)).identity
    if kept is not None:
        await on_disk(end_started, directory)
        return Enrolled(kept, False)
    wanted = await on_disk(_wanted_key, directory, url, token.id)
    enrolled = await enrol(reactor, url, token, name or facts.hostname or "router", facts, wanted)
    await on_disk(write_identity, directory, enrolled.identity)
    await on_disk(end_started, directory)
    return enrolled


def _wanted_key(directory: str, url: str, token: str) -> KeyRequest:
    started = started_key(directory, url, token)
    if started:
        try:
            return request_for(started)
        except ValueError:
            # Nothing of ours writes this; with a new key the console refuses a token that is used up, and says so.
            pass
    wanted = new_key()
    keep_started(directory, StartedEnrolment(console=url, token=token, key=wanted.key))
    return wanted
