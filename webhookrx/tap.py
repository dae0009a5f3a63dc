"""
The C{twistd webhookrx} command: text to settings, settings to a service.

L{Options.postOptions} finds every mistake, before anything opens.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir
from datetime import UTC, datetime
from typing import Any

from twisted.application.service import IService
from twisted.python import usage

from webhookrx.config.check import check_report, error_lines, error_report, run_as, unwritable
from webhookrx.config.limits import LIMITS
from webhookrx.config.machine import most_open_files, usable_cpus
from webhookrx.config.observers import check_notes, written_paths
from webhookrx.config.option import Kind, Option
from webhookrx.config.option_reader import COMMAND_LINE, Origin, RawOptions, RawValue
from webhookrx.config.options import BY_NAME, OPTIONS, shown_name
from webhookrx.config.resolve import Environment, Resolved, resolve
from webhookrx.diagnostics import quoted, suggestion
from webhookrx.errors import ConfigError
from webhookrx.observers.registry import find_spec
from webhookrx.operations.oplog import forget_plugin_cache_complaints
from webhookrx.service import known_observers
from webhookrx.settings import Observer, Settings
from webhookrx.version import version_line

_SHORT = {f"-{option.short}" for option in OPTIONS if option.short}

#: The factory that keeps our own log off standard output, as C{twistd --logger} takes it.
STDERR_LOG = "webhookrx.operations.oplog.stderr"


class _TableOptions(usage.Options):
    """
    Collects the options of the command line; the C{opt_} methods come from the table of options.

    They are not in the mapping that C{usage.Options} is: its C{repr} must not show a token.
    """

    def __init__(self) -> None:
        super().__init__()
        self._given: dict[str, list[RawValue]] = {}

    def given(self) -> RawOptions:
        """Return the options so far."""
        return {name: tuple(values) for name, values in self._given.items()}

    def take(self, option: Option, value: str) -> None:
        """Add a value of an option."""
        origin = Origin((f"--{option.name}",), COMMAND_LINE)
        self._given.setdefault(option.name, []).append(RawValue(value, origin))


def _option_method(option: Option) -> Callable[..., None]:
    """Return the C{opt_} method of an option; C{usage.Options} tells flags by their arguments."""

    def take_value(self: _TableOptions, value: str) -> None:
        self.take(option, value)

    def take_flag(self: _TableOptions) -> None:
        self.take(option, "yes")

    method = take_flag if option.kind is Kind.FLAG else take_value
    method.__doc__ = _help(option)
    return method


def _help(option: Option) -> str:
    notes = [f"one of {', '.join(option.choices)}"] if option.choices else []
    if option.kind is Kind.LIMITS:
        notes.append(f"names: {', '.join(LIMITS)}")
    if option.repeat:
        notes.append("may be repeated")
    if option.kind is not Kind.FLAG and option.default != "none":
        notes.append(f"default: {option.default}")
    text = option.help[0].upper() + option.help[1:]
    return f"{text} ({'; '.join(notes)})." if notes else f"{text}."


for _each in OPTIONS:
    _method = _option_method(_each)
    setattr(_TableOptions, f"opt_{_each.name.replace('-', '_')}", _method)
    if _each.short:
        setattr(_TableOptions, f"opt_{_each.short}", _method)


def _completions() -> usage.Completions:
    actions: dict[str, object] = {"port": usage.Completer(descr="port number or endpoint string")}
    for option in OPTIONS:
        if option.kind is Kind.FILE:
            actions[option.name] = usage.CompleteFiles()
        elif option.kind is Kind.DIRECTORY:
            actions[option.name] = usage.CompleteDirs()
        elif option.choices:
            actions[option.name] = usage.CompleteList(list(option.choices))
        elif option.kind is Kind.LIMITS:
            actions[option.name] = usage.CompleteList([f"{name}=" for name in LIMITS])
    return usage.Completions(optActions=actions, multiUse=[option.name for option in OPTIONS if option.repeat])


class Options(_TableOptions):
    """
    Command line options of C{twistd webhookrx}.

    @ivar settings: set once the options are parsed.
    """

    synopsis = "[options]"
    longdesc = (
        "Receives log messages by HTTP POST and answers 200 when they are safe. All options but --config and --check "
        "can stand in a YAML file. Options may be written with _ for -. Put the options of twistd, such as -n, before "
        "the word webhookrx; the command webhookrx run sets -n and --pidfile= itself and takes no others."
    )
    compData = _completions()
    settings: Settings

    def opt_version(self) -> None:
        """Print the version, and whether the compiled path is in use, and exit."""
        print(version_line())
        raise SystemExit(0)

    def parseOptions(self, options: Sequence[str] | None = None) -> None:
        """
        Take C{_} for C{-} in the names of options, and suggest the nearest name for an unknown one.

        @raise usage.UsageError: a mistake, when these options have no parent.
        @raise SystemExit: a mistake in the options of a command. Only the mistake is printed: C{twistd} itself would
            put its own usage in front, a hundred lines in a journal at each start.
        """
        arguments = list(sys.argv[1:] if options is None else options)
        try:
            if "--_shell-completion" not in arguments:
                arguments = list(_with_dashes(arguments))
            super().parseOptions(arguments)
        except usage.UsageError as error:
            if self.parent is None:
                raise
            if "--check" in arguments:
                print(error_report(str(error)), file=sys.stderr)
                raise SystemExit(1) from None
            print(error_lines(str(error)), file=sys.stderr)
            raise SystemExit(os.EX_CONFIG) from None

    def parseArgs(self, *args: str) -> None:
        """
        @raise usage.UsageError: there is an argument that is no option.
        """
        if args:
            # It may be the second part of a token with a blank.
            hidden = any(BY_NAME[name].secret for name in self.given())
            raise usage.UsageError(
                f"It takes options only; left over is {'something else' if hidden else quoted(args[0])}."
            )

    def postOptions(self) -> None:
        """
        Read files, validate everything, open nothing.

        @raise usage.UsageError: a mistake.
        @raise SystemExit: C{--check} has printed the settings, or the mistakes.
        """
        check = "check" in self.given()
        self._started_in = os.getcwd()
        try:
            resolved = self._resolve()
        except ConfigError as error:
            if check:
                print(error_report(str(error)), file=sys.stderr)
                raise SystemExit(1) from None
            raise usage.UsageError(str(error)) from None
        if check:
            parent: Mapping[str, Any] = self.parent or {}
            unusable = unwritable(
                [path for each in resolved.settings.observers for path in written_paths(each, find_spec)],
                run_as(parent.get("uid"), parent.get("gid")),
            )
            if unusable:
                print(error_report("\n".join(unusable)), file=sys.stderr)
                raise SystemExit(1)
            print(check_report(resolved, check_notes(resolved.settings.observers, find_spec)))
            raise SystemExit(0)
        forget_plugin_cache_complaints()
        if self.parent is not None:
            _check_files_of_twistd(self.parent)
            if _writes_to_stdout(resolved.settings):
                _keep_log_off_stdout(self.parent)
        self.settings = resolved.settings

    def reread(self, running: Settings) -> Settings:
        """
        Read files and validate everything again, for a reload.

        @param running: the settings in use.

        @raise ConfigError: a mistake, or a change that needs a restart.
        """
        try:
            # twistd may have changed its directory (--rundir) since.
            with chdir(self._started_in):
                settings = self._resolve(running).settings
        except OSError as error:
            raise ConfigError(f"Relative names start from {error.filename!r}: {error.strerror}.") from None
        if _writes_to_stdout(settings) and not _writes_to_stdout(self.settings):
            # The start decided what is on standard output: the log, or nothing.
            raise ConfigError("The stdout observer can't be added by a reload, restart for it.", option="observers")
        return settings

    def _resolve(self, running: Settings | None = None) -> Resolved:
        given = self.given()
        return resolve(given, _environment(checks_only="check" in given), running)


def makeService(options: Options) -> IService:
    """
    Make the service of validated options; nothing is opened yet.

    @raise SystemExit: a file has changed since they were validated, or systemd did not pass a socket; the reason is
        printed.
    """
    # The service imports the reactor, which --help and --check do not need.
    try:
        from webhookrx.service.service import build_service

        return build_service(options.settings, reread=options.reread)
    except ConfigError as error:
        print(error_lines(str(error)), file=sys.stderr)
        raise SystemExit(os.EX_CONFIG) from None


def _environment(*, checks_only: bool) -> Environment:
    return Environment(
        environ=os.environ,
        now=datetime.now(UTC),
        observers=known_observers.known(with_promises=checks_only),
        cpus=usable_cpus(),
        open_files=most_open_files(),
        checks_only=checks_only,
    )


def _with_dashes(arguments: Sequence[str]) -> Iterator[str]:
    """
    Yield the arguments with the full names of options.

    @raise usage.UsageError: a name is unknown or ambiguous.
    """
    rest = iter(arguments)
    for argument in rest:
        takes_value = False
        if argument.startswith("--") and argument != "--":
            word, equals, value = argument[2:].partition("=")
            name = _full_name(word)
            takes_value = name in BY_NAME and BY_NAME[name].kind is not Kind.FLAG and not equals
            argument = f"--{name}{equals}{value}"
        elif argument in _SHORT:
            takes_value = True
        elif not argument.startswith("-") or argument == "--":
            # Options end here, as in getopt.
            yield argument
            yield from rest
            return
        yield argument
        if takes_value:
            yield from itertools.islice(rest, 1)


def _full_name(word: str) -> str:
    name = word.replace("_", "-")
    names = [*BY_NAME, "help", "version"]
    if name in names:
        return name
    begun = [each for each in names if name and each.startswith(name)]
    if len(begun) == 1:
        return begun[0]
    if begun:
        raise usage.UsageError(f"--{name} is short for several options: --{', --'.join(begun)}.")
    options = [f"--{each}" for each in names]
    raise usage.UsageError(f"There is no option --{shown_name(word)}. {suggestion(f'--{name}', options)}")


def _writes_to_stdout(settings: Settings) -> bool:
    """Tell whether an observer writes to standard output, behind a spool, too."""

    def writes(observer: Observer) -> bool:
        return observer.name == "stdout" or (observer.inner is not None and writes(observer.inner))

    return any(writes(each) for each in settings.observers)


def _check_files_of_twistd(parent: usage.Options) -> None:
    """
    Check whether C{twistd} can write its own files, by default in the working directory, before it fails with a
    traceback.

    @param parent: the options of C{twistd} or C{twist}, parsed but not yet in effect.
    @raise usage.UsageError: it can't.
    """
    if "nodaemon" not in parent or parent["chroot"] is not None:
        return
    if parent["pidfile"] and not _may_write(parent["pidfile"]):
        raise usage.UsageError(
            f"twistd can't write its pid file {quoted(os.path.abspath(parent['pidfile']))}. "
            "It needs none in the foreground: twistd -n --pidfile= webhookrx …"
        )
    foreground = parent["nodaemon"] or parent["debug"]
    logfile = parent["logfile"] or ("-" if foreground else "twistd.log")
    if parent["logger"] is None and not parent["syslog"] and logfile != "-" and not _may_write(logfile):
        raise usage.UsageError(
            f"twistd can't write its log {quoted(os.path.abspath(logfile))}: name another with --logfile FILE, before "
            "the word webhookrx, or stay in the foreground with -n."
        )


def _may_write(path: str) -> bool:
    """Tell whether a file can be written or made."""
    path = os.path.abspath(path)
    return os.access(path if os.path.exists(path) else os.path.dirname(path), os.W_OK, effective_ids=True)


def _keep_log_off_stdout(parent: usage.Options) -> None:
    """
    Turn the log of the service from standard output, where messages go, to standard error.

    @param parent: the options of C{twistd} or C{twist}, parsed but not yet in effect.
    @raise usage.UsageError: C{twistd} would go to the background, without a standard output.
    """
    if "nodaemon" not in parent:
        if parent.get("logFile") is sys.stdout:
            parent["logFile"] = sys.stderr
        return
    if not (parent["nodaemon"] or parent["debug"]):
        raise usage.UsageError("The stdout observer needs twistd in the foreground: twistd -n webhookrx …")
    if parent["logger"] is None and not parent["syslog"] and parent["logfile"] in (None, "-"):
        # twistd imports it by this name once all options are parsed.
        parent["logger"] = STDERR_LOG
