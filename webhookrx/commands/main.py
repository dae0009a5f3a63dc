"""
The command C{webhookrx}: a receiver in the foreground, and the verbs of all subjects.

  - C{webhookrx run OPTIONS}, and C{webhookrx OPTIONS}: the same as C{twistd -n --pidfile= webhookrx OPTIONS}
  - C{webhookrx relay OPTIONS}: moves messages from a broker to an observer
  - C{webhookrx config check FILE}: the same as C{twistd webhookrx --config FILE --check}
  - C{webhookrx status}: how a running receiver does
  - C{webhookrx tap}: what a running receiver takes and refuses, while it does
  - C{webhookrx spool list|show|replay|drop DIR}: what waits in a spool, and what was refused for good
  - C{webhookrx rules check|preview|explain FILE}: connector rules, and the connectors that they give to routers
  - C{webhookrx query check TEXT}: whether a text is a query
  - C{webhookrx classify FILE}: the sender of a recorded request
  - C{webhookrx try FILE}: what the sources of a configuration, or connectors, make of a recorded request
  - C{webhookrx enrol}: makes this machine a router of a console
  - C{webhookrx console init|backup|restore|adopt}: the files of a console
  - C{webhookrx routers list|show}: the routers of a console, and how each does
  - C{webhookrx import collector FILE}: webhooks of a collector as sources of ours
  - C{webhookrx --version}
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from webhookrx.commands.terminal import DONE, FAILED, Run, safe
from webhookrx.errors import WebhookrxError
from webhookrx.version import version_line

SUBJECTS: Final = {
    "run": "run a receiver in the foreground; the word run is optional",
    "relay": "move messages from Kafka, NATS or Redis to an observer",
    "config": "check a configuration and show every setting",
    "status": "show how a running receiver does: sources, refusals, observers, certificates",
    "tap": "show messages and refusals of a running receiver while they pass",
    "spool": "show, replay and drop messages of a spool",
    "rules": "check, preview and explain connector rules",
    "query": "check a query and show how it is understood",
    "classify": "recognise the sender of a recorded request",
    "try": "show what sources or connectors make of a recorded request, decision by decision",
    "enrol": "make this machine a router of a console",
    "console": "make, back up and restore the files of a console",
    "routers": "show the routers of a console, and how each does",
    "import": "convert the configuration of a log collector",
}
"""Each has a module of its name in L{webhookrx.commands}, or of that in L{_MODULES}; C{run} is not for argparse."""

_MODULES: Final = {"import": "importing", "try": "try_request"}
"""The modules of subjects whose names can't be those of modules."""

_OURS: Final = ("-h", "--help", "--version")


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run the command.

    @param arguments: without the name of the program; None for those of the process.
    @return: the exit status: 0, or 1 when something is wrong or could not be done; a mistake in the arguments exits
        with 2.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _receiver_options(given)
    if options is not None:
        return _receive(options)
    parsed = _parse(given)
    run: Run = parsed.run
    try:
        status = run(parsed, sys.stdout, sys.stderr)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Who reads has seen enough. What Python flushes at its end must go somewhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except (WebhookrxError, OSError) as error:
        print(f"webhookrx: {safe(str(error) or type(error).__name__)}", file=sys.stderr)
        return FAILED


def _receiver_options(arguments: list[str]) -> list[str] | None:
    """Return the options with which a receiver is to be started, or checked; None when something else is asked for."""
    match arguments:
        case ["run", *options]:
            return options
        case ["config", "check", first, *_] as words:
            options, is_file = words[2:], not first.startswith("-")
            return ["--check", *(("--config", *options) if is_file else options)]
        case [first, *_] if first.startswith("-") and first not in _OURS:
            return arguments
    return None


def _receive(options: list[str]) -> int:
    """Be C{twistd} in the foreground; it ends the process, unless all is well."""
    # It imports what a command does not need.
    from twisted.scripts.twistd import run

    sys.argv = ["twistd", "-n", "--pidfile=", "webhookrx", *options]
    run()
    return DONE


class _Version(argparse.Action):
    """Prints the version on one line; the action of argparse wraps it."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(version_line())
        parser.exit(DONE)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the arguments. A verb with C{take_more} gets what argparse finds no place for, unless that holds options."""
    parsed, more = _parser(arguments).parse_known_args(arguments)
    if more:
        if not hasattr(parsed, "take_more") or any(text.startswith("-") for text in more):
            parsed.parser.error(f"unrecognized arguments: {' '.join(more)}")
        parsed.take_more(parsed, more)
    return parsed


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Return what reads these arguments. Only the subject that they name is imported: some stand on a lot."""
    parser = argparse.ArgumentParser(prog="webhookrx", description="Run and manage a webhookrx receiver.")
    parser.add_argument("--version", action=_Version, nargs=0, help="show program's version number and exit")
    subjects = parser.add_subparsers(title="subjects", metavar="SUBJECT", required=True)
    named = next((text for text in arguments if not text.startswith("-")), None)
    for name, text in SUBJECTS.items():
        subject = subjects.add_parser(name, help=text)
        if name == named:
            import_module(f"webhookrx.commands.{_MODULES.get(name, name)}").add_to(subject)
    return parser
