"""
Makes L{Settings} of the command line, the configuration file and defaults, and checks all of it; nothing is opened.

The command line wins over an item of C{sources:}, that over the top level of the file, and that over the default. A
list replaces the one below it; limits are joined name by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from webhookrx.config.console_options import read_console
from webhookrx.config.endpoints import admin_listener
from webhookrx.config.files import (
    CONTROL_SOCKET,
    Snapshot,
    check_socket_path,
    check_state_dir,
    default_runtime_dir,
    default_state_dir,
)
from webhookrx.config.guards.context import GuardContext, read_keys
from webhookrx.config.guards.networks import read_network_lists
from webhookrx.config.limits import read_limits
from webhookrx.config.machine import HostFacts, fit_connections, this_host, worker_count
from webhookrx.config.observers import KnownObservers, read_observers
from webhookrx.config.option import OptionScope
from webhookrx.config.option_reader import NOWHERE, ConfigFile, Effective, OptionReader, Problems, RawOptions
from webhookrx.config.options import BY_NAME
from webhookrx.config.own_senders import read_own_senders
from webhookrx.config.pem import contents_of
from webhookrx.config.sources import ResolvedSources, resolve_sources
from webhookrx.diagnostics import quoted
from webhookrx.management.alarm_rules import AlarmSettings
from webhookrx.settings import GuardSettings, RouterSettings, Settings


@dataclass(frozen=True, slots=True)
class Environment:
    """
    What settings depend on besides options and files.

    @ivar environ: environment variables.
    @ivar now: the time with its zone, for the dates of certificates.
    @ivar observers: the observers that specs may name.
    @ivar cpus: CPUs that this process may use.
    @ivar host: returns the facts of this machine.
    @ivar checks_only: nothing is started: a mistake in the rules file is an error, whatever was in use before.
    @ivar open_files: files that this process may have open; None: no limit, or an unknown one.
    """

    environ: Mapping[str, str]
    now: datetime
    observers: KnownObservers
    cpus: int = 1
    host: Callable[[], HostFacts] = this_host
    open_files: int | None = None
    checks_only: bool = False


@dataclass(frozen=True, slots=True)
class Resolved:
    """
    Settings, and each with its origin.

    @ivar config_file: the absolute path of the file that was read; None without one.
    """

    settings: Settings
    effective: tuple[Effective, ...]
    config_file: str | None


def resolve(command_line: RawOptions, environment: Environment, running: Settings | None = None) -> Resolved:
    """
    Make settings.

    @param running: the settings in use, which these are to replace; None at a start.
    @raise webhookrx.config.option_reader.ConfigProblems: all mistakes together.
    """
    problems = Problems()
    _check_encoding(command_line, problems)
    problems.raise_errors()
    service = OptionReader((command_line,), problems)
    path = service.path("config")
    file = _read_config_file(service, environment.environ)
    service = OptionReader((command_line, file.options), problems)
    ack = service.text("ack", Settings((), ()).ack)
    observers = read_observers(service, environment.observers, environment.environ, ack)
    limits = read_limits(service)
    allowed = service.flag("allow-plaintext-token", False)
    of_sources = ResolvedSources()
    tls_files = Snapshot()
    console = read_console(service, environment.environ)
    own_sources = _has_sources(command_line, file)
    takes_bundles = bool(service.raw("console")) and not own_sources
    is_router = bool(service.raw("rules")) or takes_bundles
    lists = read_network_lists(service)
    own_senders = read_own_senders(service)
    keys = read_keys(service)
    context = GuardContext(own_senders.definitions, lists.networks, keys, plaintext=allowed)
    if not is_router or own_sources:
        of_sources = resolve_sources(
            command_line,
            file,
            problems,
            now=environment.now,
            tls_files=tls_files,
            context=context,
        )
    sources, effective = of_sources.sources, list(of_sources.effective)
    router: RouterSettings | None = None
    state_dir: str | None = None
    if not is_router:
        problems.add(*own_senders.problems.errors, *own_senders.problems.warnings)
        guards = [source.guard for source in sources if source.guard is not None]
        _warn_of_router_options(service, guards)
        if any(guard.idempotency for guard in guards):
            state_dir = _state_dir(service, environment.environ)
    elif takes_bundles:
        state_dir = _state_dir(service, environment.environ)
        if console is not None:
            from webhookrx.config.console_form import resolve_console_router

            form = resolve_console_router(
                service,
                console,
                environment.host,
                environment.now,
                running,
                tls_files,
                own_senders,
                context,
            )
            if form is not None:
                router, sources = form.router, form.sources
                effective += form.effective
    else:
        state_dir = _state_dir(service, environment.environ)
        # It takes a megabyte of memory, which a receiver without rules does not need.
        from webhookrx.config.router_form import join_sources, resolve_router

        form = resolve_router(
            service,
            environment.host,
            environment.now,
            running,
            tls_files,
            own_senders,
            context,
            state_dir=state_dir,
            checks_only=environment.checks_only,
        )
        if form is not None:
            router, sources = form.router, join_sources(sources, form, problems)
            effective += form.effective
    if state_dir is None and any(source.guard and source.guard.idempotency for source in sources):
        service.warn(
            "state-dir",
            "Without a state directory (--state-dir, or StateDirectory= of systemd), a restart forgets the deliveries "
            "of idempotency, which may be stored again.",
        )
    drain_timeout = service.duration("drain-timeout", Settings((), ()).drain_timeout)
    admin = admin_listener(service, [each for source in sources for each in source.listeners])
    workers = worker_count(service, environment.cpus)
    record = _record(service)
    alarms = _alarms(file, service)
    control = _control(service, environment.environ)
    problems.raise_errors()
    settings = Settings(
        sources,
        observers,
        ack,
        limits,
        drain_timeout,
        admin,
        control,
        workers,
        router,
        console,
        state_dir=state_dir,
        record=record,
        watched_files={**lists.watched, **of_sources.watched},
        signing_certs=tuple(keys.files),
        fetch_keys=keys.are_fetched,
        alarms=alarms,
    )
    settings = _fitted(settings, environment.open_files, service)
    problems.raise_errors()
    # The router has the files of connectors: while it is blocked, those in use and not those on disk.
    files = contents_of((source for source in sources if source.connector is None), tls_files)
    settings = replace(settings, warnings=tuple(each.text for each in problems.warnings), tls_files=files)
    return Resolved(settings, (*service.effective, *effective), path)


def _fitted(settings: Settings, open_files: int | None, service: OptionReader) -> Settings:
    """Return the settings with the limit on connections lowered, with a warning, to the limit on open files."""
    fitted, lowered = service.problems.attempt(NOWHERE, fit_connections, settings, open_files) or (settings, "")
    if lowered:
        service.problems.warn(lowered, NOWHERE)
        shown = Effective("", "limit connections", str(fitted.limits.connections), "the limit on open files")
        service.effective[:] = [shown if each.name == shown.name else each for each in service.effective]
    return fitted


def _has_sources(command_line: RawOptions, file: ConfigFile) -> bool:
    """Tell whether there is an option of a source; allow-slow-patterns is for the rules of a router, too."""
    options = {*command_line, *file.options} - {"allow-slow-patterns"}
    return file.sources is not None or any(BY_NAME[name].scope is OptionScope.SOURCE for name in options)


def _warn_of_router_options(service: OptionReader, guards: Sequence[GuardSettings]) -> None:
    """Warn of options that only a router uses, or some guards, without any of these."""
    for name in ("rules", "router-name", "router-label"):
        if service.raw(name) and not service.raw("console"):
            service.warn(name, "It is not used without --rules.")
        service.show(name, "none")
    if service.raw("senders") and not any(guard.sender for guard in guards):
        service.warn("senders", "It is not used without --rules, or a source with a sender.")
    if not any(guard.idempotency for guard in guards):
        if service.raw("state-dir"):
            service.warn("state-dir", "It is not used without --rules, or a source with idempotency.")
        service.show("state-dir", "none")


def _state_dir(service: OptionReader, environ: Mapping[str, str]) -> str | None:
    """Return the state directory; None without one."""
    if not service.raw("state-dir"):
        directory = default_state_dir(environ)
        service.show("state-dir", directory or "none")
        return directory
    directory = service.path("state-dir")
    if directory is not None:
        service.attempt("state-dir", check_state_dir, directory)
    return directory


def _control(service: OptionReader, environ: Mapping[str, str]) -> str | None:
    """Return the path of the control socket; None without one."""
    if service.raw("control"):
        path = service.path("control")
    else:
        directory = default_runtime_dir(environ)
        path = None if directory is None else f"{directory}/{CONTROL_SOCKET}"
        service.show("control", path or "none")
    if path is not None:
        service.attempt("control", check_socket_path, path)
    return path


def _record(service: OptionReader) -> str | None:
    """Return the directory in which requests are recorded; None when they are not."""
    directory = service.path("record")
    if directory is not None:
        service.attempt("record", check_state_dir, directory)
        service.warn("record", f"Requests are recorded in {quoted(directory)}, their bodies as they came.")
    return directory


def _alarms(file: ConfigFile, service: OptionReader) -> AlarmSettings:
    if not file.alarms and not file.alarm_targets:
        return AlarmSettings()
    # Queries take memory, which a receiver without alarms does not need.
    from webhookrx.config.alarms import read_alarms

    return read_alarms(file, service)


def _check_encoding(command_line: RawOptions, problems: Problems) -> None:
    """Note values that are not UTF-8, which Python has as lone surrogates that can't be encoded."""
    for values in command_line.values():
        for value in values:
            if not value.text.isascii() and any("\ud800" <= char <= "\udfff" for char in value.text):
                problems.error("It is not UTF-8 text.", value.origin)


def _read_config_file(service: OptionReader, environ: Mapping[str, str]) -> ConfigFile:
    """
    @raise webhookrx.config.option_reader.ConfigProblems: the file can't be read at all.
    """
    path = service.value("config")
    if path is None:
        return ConfigFile({})
    # YAML takes a megabyte of memory, which a receiver without a file does not need.
    from webhookrx.config.yaml_file import read_config_file

    return read_config_file(path, service.problems, environ, service.origin("config"))
