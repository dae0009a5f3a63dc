"""
The subject C{relay}: moves messages from a broker to an observer, in the foreground.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TextIO

from webhookrx.commands.terminal import DONE, FAILED, describe
from webhookrx.config.check import error_lines, error_report, run_as, unwritable
from webhookrx.config.observers import check_notes, written_paths
from webhookrx.config.option import Kind, Option
from webhookrx.config.option_reader import COMMAND_LINE, Origin, RawOptions, RawValue
from webhookrx.diagnostics import quoted
from webhookrx.errors import CannotStart, ConfigError
from webhookrx.observers.registry import find_spec
from webhookrx.relay.settings import OPTIONS, RelaySettings, resolve_relay
from webhookrx.relay.target import relay_weaknesses
from webhookrx.service import known_observers
from webhookrx.version import version_line

#: Options of the process, not of the relay.
_OF_PROCESS: Final = ("pidfile", "umask", "check")

_MASK: Final = re.compile(r"0?[0-7]{3}")


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the subject to its parser; it has no verbs."""
    describe(
        parser,
        _run,
        "Move messages from Kafka, NATS JetStream or Redis Streams to an observer, and settle in the broker what it\n"
        "has stored. Any number of relays of the same group share the work.",
        "webhookrx relay --from nats:nats://localhost:4222/LOGS --group store --to file:messages.jsonl "
        "--dead file:dead.jsonl",
    )
    for option in OPTIONS:
        name = f"--{option.name}"
        # argparse formats help texts by %.
        text = option.help.replace("%", "%%")
        if option.kind is Kind.FLAG:
            parser.add_argument(name, action="store_true", help=text)
        else:
            parser.add_argument(name, action=_Once, metavar=option.value, help=_with_default(option, text))


def _with_default(option: Option, text: str) -> str:
    notes = [f"one of {', '.join(option.choices)}"] if option.choices else []
    if option.default != "none":
        notes.append(f"default: {option.default}")
    return f"{text} ({'; '.join(notes)})" if notes else text


class _Once(argparse.Action):
    """Takes an option that may be given once: of two observers, one would be left out without a word."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, values: Any, name: str | None = None) -> None:
        if getattr(namespace, self.dest) is not None:
            parser.error(f"argument {name}: given twice, but takes one value")
        setattr(namespace, self.dest, values)


def _run(asked: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    known = known_observers.known(with_promises=False)
    try:
        mask = _umask(asked.umask)
        settings = resolve_relay(_given(asked), known, os.environ)
        if asked.check:
            _check_files(settings)
            print(_check_report(settings), file=out)
            return DONE
    except ConfigError as error:
        if asked.check:
            print(error_report(str(error)), file=err)
            return FAILED
        print(error_lines(str(error)), file=err)
        return os.EX_CONFIG
    if mask is not None:
        os.umask(mask)
    with _pid_file(asked.pidfile):
        return _relay(settings, err)


def _given(asked: argparse.Namespace) -> RawOptions:
    """Return the options of the relay that were given, as the reader of options takes them."""
    values = {option.name: getattr(asked, option.name.replace("-", "_")) for option in OPTIONS}
    return {
        name: (RawValue(value, Origin((f"--{name}",), COMMAND_LINE)),)
        for name, value in values.items()
        if value is not None and name not in _OF_PROCESS
    }


def _umask(text: str | None) -> int | None:
    """
    Read a umask.

    @raise ConfigError: it is none.
    """
    if text is None:
        return None
    if not _MASK.fullmatch(text):
        raise ConfigError(f"{quoted(text)} is not a umask: three octal digits, such as 027.", option="--umask")
    return int(text, 8)


def _check_files(settings: RelaySettings) -> None:
    """
    @raise ConfigError: an observer may not write a file.
    """
    paths = [path for each in settings.observers for path in written_paths(each, find_spec)]
    if unusable := unwritable(paths, run_as()):
        raise ConfigError("\n".join(unusable))


def _check_report(settings: RelaySettings) -> str:
    """Return what C{--check} prints of good settings."""
    rows = [
        ("from", settings.source),
        ("group", settings.group),
        ("to", settings.target.text),
        ("dead", "kept by the spool" if settings.dead is None else settings.dead.text),
        ("ack", settings.ack),
        ("admin", "none" if settings.admin is None else settings.admin.text),
    ]
    lines = [f"  {name:5}  {value}" for name, value in rows]
    built = [known_observers.build_observer(each, settings.ack) for each in settings.observers]
    weak = [sentence for each in built for sentence in relay_weaknesses(each, settings.ack)]
    warnings = [f"warning: {warning}" for warning in (*settings.warnings, *weak)]
    notes = [line for note in check_notes(settings.observers, find_spec) for line in (note, "")]
    return "\n".join(["relay", *lines, "", *notes, version_line(), *warnings, "The configuration is good."])


def _relay(settings: RelaySettings, err: TextIO) -> int:
    """Run the relay until a signal ends it."""
    # The service imports the reactor, which --help and --check do not need.
    from twisted.internet import reactor
    from twisted.logger import globalLogBeginner

    from webhookrx.operations.oplog import stderr
    from webhookrx.operations.steady_timers import use_monotonic_clock
    from webhookrx.relay.service import RelayService

    running: Any = reactor
    use_monotonic_clock(running)
    globalLogBeginner.beginLoggingTo([stderr()], redirectStandardIO=False)
    try:
        service = RelayService(settings, running)
        service.startService()
    except CannotStart as error:
        print(error_lines(str(error)), file=err)
        return FAILED
    except ConfigError as error:
        print(error_lines(str(error)), file=err)
        return os.EX_CONFIG
    running.addSystemEventTrigger("before", "shutdown", service.stopService)
    running.run()
    return DONE


@contextmanager
def _pid_file(path: str | None) -> Iterator[None]:
    """
    Keep the number of this process in a file.

    @raise ConfigError: another process that runs is in it, or it can't be written.
    """
    if not path:
        yield
        return
    path = os.path.abspath(path)
    if (other := _running(path)) is not None:
        raise ConfigError(f"{quoted(path)} has the number of a process that runs, {other}.", option="--pidfile")
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(f"{os.getpid()}\n")
    except OSError as error:
        raise ConfigError(f"{quoted(path)} can't be written: {error.strerror}.", option="--pidfile") from None
    try:
        yield
    finally:
        with suppress(OSError):
            os.unlink(path)


def _running(path: str) -> int | None:
    """Return the number of another process in a pid file, if that runs."""
    try:
        with open(path, encoding="ascii") as file:
            number = int(file.read(20))
    except (OSError, ValueError):
        return None
    if number <= 0 or number == os.getpid():
        return None
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return None
    except OSError:
        pass  # it is there, and another user's
    return number
