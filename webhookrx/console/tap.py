"""
The C{twistd webhookrx-console} command: text to settings, settings to a service.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Final

from twisted.application.service import IService
from twisted.python import usage

from webhookrx.config.check import error_lines, error_report
from webhookrx.config.option import Kind, Option
from webhookrx.config.option_reader import COMMAND_LINE, Origin, RawValue
from webhookrx.console.settings import OPTIONS, ConsoleSettings, resolve_console
from webhookrx.diagnostics import quoted
from webhookrx.errors import CannotStart, ConfigError
from webhookrx.version import version_line

#: What the extra C{console} of setup.cfg installs, by the names of modules.
EXTRA: Final = ("argon2", "jinja2", "joserfc", "markupsafe")


class _ConsoleOptionTable(usage.Options):
    """Collects the options of the command line; the C{opt_} methods come from the table of options."""

    def __init__(self) -> None:
        super().__init__()
        self._given: dict[str, list[RawValue]] = {}

    def take(self, option: Option, value: str) -> None:
        """
        Add a value of an option.

        @raise usage.UsageError: it has one already, and takes one.
        """
        if option.name in self._given and not option.repeat:
            raise usage.UsageError(f"--{option.name}: given twice, but takes one value.")
        value_with_origin = RawValue(value, Origin((f"--{option.name}",), COMMAND_LINE))
        self._given.setdefault(option.name, []).append(value_with_origin)


def _option_method(option: Option) -> Callable[..., None]:
    """Return the C{opt_} method of an option; C{usage.Options} tells flags by their arguments."""

    def take_value(self: _ConsoleOptionTable, value: str) -> None:
        self.take(option, value)

    def take_flag(self: _ConsoleOptionTable) -> None:
        self.take(option, "yes")

    method = take_flag if option.kind is Kind.FLAG else take_value
    method.__doc__ = f"{option.help[0].upper()}{option.help[1:]}."
    return method


for _each in OPTIONS:
    setattr(_ConsoleOptionTable, f"opt_{_each.name.replace('-', '_')}", _option_method(_each))


class ConsoleOptions(_ConsoleOptionTable):
    """
    Command line options of C{twistd webhookrx-console}.

    @ivar settings: set once the options are parsed.
    """

    synopsis = "[options]"
    longdesc = (
        "Manages many webhookrx routers from one place. Make its files first with webhookrx console init. Put the "
        "options of twistd, such as -n, before the word webhookrx-console."
    )
    settings: ConsoleSettings

    def opt_version(self) -> None:
        """Print the version and exit."""
        print(version_line())
        raise SystemExit(0)

    def parseArgs(self, *args: str) -> None:
        """
        @raise usage.UsageError: there is an argument that is no option.
        """
        if args:
            raise usage.UsageError(f"It takes options only; left over is {quoted(args[0])}.")

    def postOptions(self) -> None:
        """
        Validate everything, open nothing.

        @raise SystemExit: a mistake, which is printed; or C{--check} has printed the settings.
        """
        check = "check" in self._given
        try:
            self.settings = resolve_console({name: tuple(values) for name, values in self._given.items()})
        except ConfigError as error:
            print((error_report if check else error_lines)(str(error)), file=sys.stderr)
            raise SystemExit(1 if check else os.EX_CONFIG) from None
        if check:
            print(check_text(self.settings))
            raise SystemExit(0)


Options = ConsoleOptions
"""By this name twistd looks for it."""


def check_text(settings: ConsoleSettings) -> str:
    """Return what C{--check} prints of good settings."""
    rows = [
        ("port", " ".join(each.text for each in settings.ports)),
        ("routers", settings.routers.text if settings.routers else ""),
        ("db", settings.database),
        ("url", settings.url),
        ("admin", "none" if settings.admin is None else settings.admin.text),
        ("read-only-rules", "yes" if settings.read_only_rules else "no"),
    ]
    oidc = settings.oidc
    if oidc is not None:
        rows += [
            ("oidc-issuer", oidc.issuer),
            ("oidc-client-id", oidc.client_id),
            ("oidc-secret-file", oidc.secret_file),
            ("oidc-role", " ".join(map(str, oidc.roles))),
            ("oidc-only", "yes" if oidc.only else "no"),
        ]
    lines = [f"  {name:16}  {value}" for name, value in rows]
    return "\n".join(["console", *lines, "", version_line(), "The configuration is good."])


def makeService(options: ConsoleOptions) -> IService:
    """
    Make the service of validated options, with its store opened.

    @raise SystemExit: the store can't be opened, or packages are missing; the reason is printed.
    """
    missing = [name for name in EXTRA if find_spec(name) is None]
    if missing:
        sentence = f"A console needs what is not installed: {', '.join(missing)}. Run: pip install 'webhookrx[console]'"
        print(error_lines(sentence), file=sys.stderr)
        raise SystemExit(os.EX_CONFIG)
    # They import the reactor, which --help and --check do not need.
    from twisted.internet import reactor

    from webhookrx.console.service import ConsoleService
    from webhookrx.console.store.files import StoreFiles
    from webhookrx.operations.steady_timers import use_monotonic_clock

    use_monotonic_clock(reactor)
    try:
        return ConsoleService(options.settings, StoreFiles(options.settings.database), reactor)
    except ConfigError as error:
        print(error_lines(str(error)), file=sys.stderr)
        raise SystemExit(os.EX_CONFIG) from None
    except CannotStart as error:
        print(error_lines(str(error)), file=sys.stderr)
        raise SystemExit(1) from None
