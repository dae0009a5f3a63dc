"""
The subject C{spool}: lists, shows, puts back and drops messages of a spool.
"""

from __future__ import annotations

import argparse
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from itertools import islice
from typing import Any, Final, TextIO

from webhookrx.commands.terminal import DONE, FAILED, Verbs, print_json, safe
from webhookrx.errors import WebhookrxError
from webhookrx.message.encoders import NotAMessage, decode_stored
from webhookrx.message.macros import isodate
from webhookrx.quantities import format_size
from webhookrx.spool.admin import HIGHEST, ChangeResult, MessageRef, SpoolAdmin
from webhookrx.spool.faults import error_text
from webhookrx.spool.rows import ListedMessage

_LISTED: Final = 100
"""The default of C{--limit}."""

_Command = Callable[[SpoolAdmin, argparse.Namespace, TextIO, TextIO], int]


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the verbs of the subject to its parser."""
    parser.description = "Look into the directory of a spool, with or without a receiver that uses it."
    verbs = Verbs(parser)

    listing = _add(verbs, "list", _list, "show how much waits, and the dead letters")
    listing.add_argument("--waiting", action="store_true", help="show waiting messages instead")
    listing.add_argument("--limit", type=_count, default=_LISTED, metavar="N", help=f"at most N ({_LISTED})")

    show = _add(verbs, "show", _show, "show whole messages, as JSON")
    show.add_argument("ids", nargs="+", type=_ref, metavar="ID")
    show.set_defaults(take_more=_take_more)

    replay = _add(verbs, "replay", _replay, "put dead letters back at the end of the queue")
    _choose(replay)

    drop = _add(verbs, "drop", _drop, "drop messages permanently, without asking")
    _choose(drop)
    drop.add_argument("--waiting", action="store_true", help="drop waiting messages instead of dead letters")


def _add(verbs: Verbs, name: str, command: _Command, text: str) -> argparse.ArgumentParser:
    parser = verbs.add(name, partial(_with_admin, command), text)
    parser.add_argument("directory", metavar="DIR", help="the directory of the spool")
    parser.add_argument("--json", action="store_true", help="print JSON, one object per line")
    return parser


def _choose(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ids", nargs="*", type=_ref, metavar="ID", help="a message, as list shows it")
    parser.add_argument("--all", action="store_true", help="all of them")
    parser.set_defaults(take_more=_take_more)


def _take_more(asked: argparse.Namespace, more: list[str]) -> None:
    """Add numbers that stand behind options, where argparse itself looks for none."""
    try:
        asked.ids += map(_ref, more)
    except argparse.ArgumentTypeError as error:
        asked.parser.error(str(error))


def _with_admin(command: _Command, asked: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    try:
        with closing(SpoolAdmin(asked.directory)) as admin:
            for directory, caution in admin.cautions.items():
                print(f"webhookrx: {safe(directory)} {caution}", file=err)
            return command(admin, asked, out, err)
    except sqlite3.Error as error:
        raise WebhookrxError(error_text(error)) from None


def _count(text: str) -> int:
    # The length first: Python refuses to read a number of thousands of digits.
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(HIGHEST)) else 0
    if not 0 < number <= HIGHEST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {HIGHEST}")
    return number


def _ref(text: str) -> MessageRef:
    """Read C{42}, or C{worker-1/42} for a message of another worker than the first."""
    worker, slash, number = text.rpartition("/")
    if not slash:
        return MessageRef(0, _count(text))
    if not worker.startswith("worker-"):
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number nor worker-N/NUMBER")
    return MessageRef(_count(worker.removeprefix("worker-")), _count(number))


# -- commands --------------------------------------------------------------------------------------------------------


def _list(admin: SpoolAdmin, asked: argparse.Namespace, out: TextIO, _: TextIO) -> int:
    totals = admin.totals()
    oldest = None if totals.oldest is None else isodate(totals.oldest)
    if asked.json:
        print_json(out, {**totals._asdict(), "oldest": oldest})
    else:
        since = "" if oldest is None else f", the oldest received {oldest}"
        print(f"waiting: {totals.messages} messages, {format_size(totals.bytes)}{since}", file=out)
        print(f"dead letters: {totals.dead} messages, {format_size(totals.dead_bytes)}", file=out)
        for worker in admin.workers if len(admin.workers) > 1 else ():
            part = admin.totals(worker)
            print(f"  worker {worker}: {part.messages} waiting, {part.dead} dead letters", file=out)
    found = admin.waiting() if asked.waiting else admin.dead()
    for ref, item in islice(found, asked.limit):
        if asked.json:
            print_json(out, _facts(ref, item))
        else:
            print(_line(ref, item), file=out)
    left = (totals.messages if asked.waiting else totals.dead) - asked.limit
    if left > 0 and not asked.json:
        print(f"… and {left} more (--limit)", file=out)
    return DONE


def _show(admin: SpoolAdmin, asked: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    status = DONE
    for ref in asked.ids:
        item = admin.find(ref)
        if item is None:
            print(f"webhookrx: {ref}: there is no message of that number", file=err)
            status = FAILED
            continue
        facts = _facts(ref, ListedMessage.of(item))
        try:
            facts["values"] = decode_stored(item.data).values
        except NotAMessage as error:
            facts["problem"] = str(error)
            facts["data"] = item.data.hex()
        print_json(out, facts, indent=0 if asked.json else 2)
    return status


def _replay(admin: SpoolAdmin, asked: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    return _report(admin.replay(_chosen(asked)), "put back", asked.json, out, err)


def _drop(admin: SpoolAdmin, asked: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    return _report(admin.drop(_chosen(asked), waiting=asked.waiting), "dropped", asked.json, out, err)


def _chosen(asked: argparse.Namespace) -> list[MessageRef] | None:
    """Return the messages of the command line; None for all."""
    if bool(asked.ids) == asked.all:
        asked.parser.error("give either numbers or --all")
    return None if asked.all else asked.ids


def _report(
    outcomes: Iterator[tuple[MessageRef, ChangeResult]], done: str, as_json: bool, out: TextIO, err: TextIO
) -> int:
    status = DONE
    count = 0
    for ref, outcome in outcomes:
        if outcome.problem:
            print(f"webhookrx: {ref}: {outcome.problem}", file=err)
            status = FAILED
            continue
        count += 1
        if as_json:
            print_json(out, _id_facts(ref) | ({"new_id": outcome.new_id} if outcome.new_id else {}))
        else:
            new = f" as {ref._replace(id=outcome.new_id)}" if outcome.new_id else ""
            print(f"{done} {ref}{new}", file=out)
    if not as_json:
        print(f"{done}: {count} messages", file=out)
    return status


# -- text ------------------------------------------------------------------------------------------------------------


def _id_facts(ref: MessageRef) -> dict[str, Any]:
    return {"id": ref.id, **({"worker": ref.worker} if ref.worker else {})}


def _facts(ref: MessageRef, entry: ListedMessage) -> dict[str, Any]:
    """Return the fields of a message but its pairs."""
    received = isodate(entry.received) if entry.received else None
    facts: dict[str, Any] = {**_id_facts(ref), "received": received, "size": entry.size}
    if entry.reason is not None:
        facts |= {"reason": entry.reason, "observer": entry.spec, "refused": isodate(entry.died)}
    return facts


def _line(ref: MessageRef, entry: ListedMessage) -> str:
    facts = _facts(ref, entry)
    line = f"{ref!s:>12}  {facts['received'] or 'damaged'}  {entry.size:>9} B"
    if entry.reason is not None:
        line += f"  refused {facts['refused']} by {safe(entry.spec)}: {safe(entry.reason)}"
    return line
