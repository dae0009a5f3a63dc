"""
C{tap --console}: a tap of many routers, by their console.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any, Final, TextIO
from urllib.parse import quote

import msgspec

from webhookrx.commands.console_client import BAD_ARGUMENTS, UNREACHABLE, ConsoleClient, ConsoleError, console_of
from webhookrx.commands.tap_rows import print_row, some_of
from webhookrx.commands.terminal import DONE, FAILED, print_json, safe
from webhookrx.errors import ConfigError

_WHY: Final = {
    "over": "Its time is over.",
    "rights": "The token has ended, or may not tap any more.",
    "routers": "It has ended at all routers.",
    "stopping": "The console stops.",
    "ended": "It was ended at the console.",
}


class LeftOutRouter(msgspec.Struct, frozen=True):
    """A router that takes no part, and why; see L{webhookrx.console.taps.tap_order.LeftOut}."""

    router: str
    code: str
    reason: str
    paths: tuple[str, ...] = ()


class BegunTap(msgspec.Struct, frozen=True):
    """A tap that a console has started, see L{webhookrx.console.taps.tap_order.StartedTap}."""

    id: str
    seconds: int
    routers: list[str]
    left_out: list[LeftOutRouter] = []
    left_out_in_all: int = 0


def tap_by_console(asked: argparse.Namespace, request: Mapping[str, Any], out: TextIO, err: TextIO) -> int:
    """
    Start a tap, and print it until it ends.

    @param request: as the receiver itself would get it.
    @return: the exit status.
    """
    try:
        console, warning = console_of(asked)
        if warning:
            print(f"webhookrx: {safe(warning)}", file=err)
        body = {name: value for name, value in request.items() if name != "seconds"}
        body |= {"routers": asked.routers, "for": round(request["seconds"]) or 1}
        begun: BegunTap = console.request("POST", "/taps", body=msgspec.json.encode(body)).decoded(BegunTap)
        _print_left_out(begun.left_out, begun.left_out_in_all, err)
        for row in _rows(console, begun):
            if asked.json:
                print_json(out, row)
            else:
                print_row(row, out, err)
            out.flush()
    except ConfigError as error:
        print(f"webhookrx: {safe(str(error))}", file=err)
        return BAD_ARGUMENTS
    except ConsoleError as error:
        return _refused(error, err)
    except KeyboardInterrupt:
        pass
    return DONE


def _rows(console: ConsoleClient, begun: BegunTap) -> Iterator[dict[str, Any]]:
    """
    Yield what the console shows, as a receiver would.

    @raise ConsoleError: the console has gone before the end of the tap.
    """
    routers = f"{len(begun.routers)} router{'s' if len(begun.routers) != 1 else ''}"
    yield {"row": "start", "service": routers, "sources": begun.routers, "seconds": begun.seconds}
    over: set[str] = set()
    for event, data in console.events(f"/taps/{quote(begun.id, safe='')}/events"):
        if event == "row":
            yield data
        elif event == "counts":
            yield {"row": "counts", **data}
            for each in data["routers"]:
                if each["ended"] and each["router"] not in over:
                    over.add(each["router"])
                    yield {"row": "router", "router": each["router"], "why": each["ended"]}
        elif event == "end":
            yield {"row": "end", "why": _WHY.get(data["reason"], data["reason"])}
            return
    raise ConsoleError("The console has gone before the end of the tap.", UNREACHABLE)


def _refused(error: ConsoleError, err: TextIO) -> int:
    print(f"webhookrx: {safe(str(error))}", file=err)
    try:
        left_out = msgspec.convert(error.facts.get("left_out", []), list[LeftOutRouter])
    except msgspec.ValidationError:
        left_out = []
    _print_left_out(left_out, len(left_out), err)
    # As at a receiver: who has been heard and can't tap has failed.
    return FAILED if error.facts and error.status != BAD_ARGUMENTS else error.status


def _print_left_out(left_out: list[LeftOutRouter], in_all: int, err: TextIO) -> None:
    for each in left_out:
        files = f" Missing: {some_of(list(each.paths))}" if each.paths else ""
        print(safe(f"{each.router} is left out: {each.reason}{files}"), file=err)
    if in_all > len(left_out):
        print(f"{in_all - len(left_out)} more are left out.", file=err)
