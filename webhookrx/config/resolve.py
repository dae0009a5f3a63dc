"""
Command line, file and defaults made into L{Settings}: everything is checked, and nothing but the named files is read.

An option of the command line wins over a source's own entry, that over the top level of the file, and that over the
default. A list replaces the one below it; limits are joined name by name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from webhookrx.config.endpoints import admin_listener
from webhookrx.config.files import Snapshot, check_state_dir, default_state_dir, read_file
from webhookrx.config.limits import DEFAULTS, parse_limit, show_limit
from webhookrx.config.machine import HostFacts, fit_connections, this_host, worker_count
from webhookrx.config.observers import default_observer, parse_observer, secret_files
from webhookrx.config.option_reader import (
    DEFAULT,
    ConfigFile,
    ConfigProblems,
    Effective,
    Layer,
    Place,
    Problems,
    Values,
    origin,
)
from webhookrx.config.options import BY_NAME, Scope
from webhookrx.config.pem import OTHERS, contents_of
from webhookrx.config.sources import resolve_sources
from webhookrx.config.specs import quoted_spec
from webhookrx.diagnostics import quoted, suggestion
from webhookrx.errors import ConfigError
from webhookrx.settings import Limits, Observer, RouterSettings, Settings, Source, largest_body


@dataclass(frozen=True, slots=True)
class Surroundings:
    """
    What of the world matters besides options and files.

    @ivar environ: the environment.
    @ivar now: the time with its zone, for the dates of certificates.
    @ivar observer_names: the first words that observer specs may have.
    @ivar check_observer: makes an observer for an acknowledgement level and opens nothing; raises C{ConfigError}.
    @ivar cpus: how many CPUs this process may use.
    @ivar host: gives the facts of this machine.
    @ivar checks_only: nothing is started: what is wrong with the rules file is an error, whatever was in use before.
    @ivar open_files: how many files this process may have open; None: any number, or nobody knows.
    """

    environ: Mapping[str, str]
    now: datetime
    observer_names: Collection[str]
    check_observer: Callable[[Observer, str], object]
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


def resolve(command_line: Layer, surroundings: Surroundings, running: Settings | None = None) -> Resolved:
    """
    Make settings.

    @param command_line: what was given there, by the name of the option.
    @param running: the settings in use, when these are to replace them.
    @raise webhookrx.config.option_reader.ConfigProblems: something is wrong; it holds all of it.
    """
    problems = Problems()
    _check_encoding(command_line, problems)
    problems.raise_errors()
    service = Values((command_line,), problems, "", Place("", ""))
    path = service.path("config")
    file = _read(service, problems, surroundings.environ)
    service = Values((command_line, file.values), problems, "", Place("", ""))
    ack = service.text("ack", Settings((), ()).ack)
    observers = _observers(service, surroundings, ack)
    limits = _limits(service)
    allowed = service.flag("allow-plaintext-token", False)
    sources: tuple[Source, ...] = ()
    tls_files = Snapshot()
    effective: list[Effective] = []
    is_router = service.written("rules") is not None
    if not is_router or _has_sources(command_line, file):
        sources, effective = resolve_sources(
            command_line, file, problems, now=surroundings.now, plaintext_token=allowed, tls_files=tls_files
        )
    router: RouterSettings | None = None
    state_dir: str | None = None
    if not is_router:
        _is_no_router(service)
    else:
        state_dir = _state_dir(service, surroundings.environ)
        # A megabyte of memory that nobody needs who has no rules.
        from webhookrx.config.router_form import join_sources, resolve_router

        form = resolve_router(
            service,
            surroundings.host,
            surroundings.now,
            running,
            tls_files,
            state_dir=state_dir,
            checks_only=surroundings.checks_only,
        )
        if form is not None:
            router, sources = form.router, join_sources(sources, form, problems)
            effective += form.effective
    drain_timeout = service.duration("drain-timeout", Settings((), ()).drain_timeout)
    admin = admin_listener(service, [each for source in sources for each in source.listeners])
    workers = worker_count(service, surroundings.cpus)
    record = _record(service)
    problems.raise_errors()
    settings = Settings(
        sources, observers, ack, limits, drain_timeout, admin, workers, router, state_dir=state_dir, record=record
    )
    settings = _fitted(settings, surroundings.open_files, service)
    problems.raise_errors()
    # What connectors have the router has: while it is blocked that is not what is in their files now.
    files = contents_of((source for source in sources if source.connector is None), tls_files)
    settings = replace(settings, warnings=tuple(problems.warnings), tls_files=files)
    return Resolved(settings, (*service.effective, *effective), path)


def _fitted(settings: Settings, open_files: int | None, service: Values) -> Settings:
    """Return the settings with no more connections than there can be files; what was lowered is noted."""
    place = Place("", "")
    fitted, lowered = service.problems.attempt(place, fit_connections, settings, open_files) or (settings, "")
    if lowered:
        service.problems.warn(lowered, place)
        shown = Effective("", "limit connections", str(fitted.limits.connections), "the limit on open files")
        service.effective[:] = [shown if each.name == shown.name else each for each in service.effective]
    return fitted


def _has_sources(command_line: Layer, file: ConfigFile) -> bool:
    """Tell whether anybody has written of sources: a router needs none, and what allows slow patterns is for both."""
    options = {*command_line, *file.values} - {"allow-slow-patterns"}
    return file.entries is not None or any(BY_NAME[name].scope is Scope.SOURCE for name in options)


def _is_no_router(service: Values) -> None:
    """Note options that only a router has use for."""
    for name in ("rules", "router-name", "router-label", "senders", "state-dir"):
        if service.written(name) is not None:
            service.problems.warn("It is not used without --rules.", service.place(name))
        service.show(name, "none")


def _state_dir(service: Values, environ: Mapping[str, str]) -> str | None:
    """Return the directory for what a restart needs; None without one."""
    if service.written("state-dir") is None:
        directory = default_state_dir(environ)
        service.show("state-dir", directory or "none")
        return directory
    directory = service.path("state-dir")
    if directory is not None:
        service.problems.attempt(service.place("state-dir"), check_state_dir, directory)
    return directory


def _record(service: Values) -> str | None:
    """Return the directory in which requests are recorded; None when they are not."""
    directory = service.path("record")
    if directory is not None:
        place = service.place("record")
        service.problems.attempt(place, check_state_dir, directory)
        service.problems.warn(f"Requests are recorded in {quoted(directory)}, their bodies as they came.", place)
    return directory


def _check_encoding(command_line: Layer, problems: Problems) -> None:
    """Note values that are not UTF-8: Python hands such bytes over as lone surrogates, which nothing can write."""
    for written in command_line.values():
        for value in written.values:
            if not value.text.isascii() and any("\ud800" <= char <= "\udfff" for char in value.text):
                problems.error("It is not UTF-8 text.", written.place_of(value))


def _read(service: Values, problems: Problems, environ: Mapping[str, str]) -> ConfigFile:
    """
    @raise webhookrx.config.option_reader.ConfigProblems: the file can't be read at all.
    """
    texts = service.texts("config")
    if not texts:
        return ConfigFile({})
    # A megabyte of memory that nobody needs who has no file.
    from webhookrx.config.yaml_file import read_config_file

    try:
        return read_config_file(texts[0].text, problems, environ)
    except ConfigError as error:
        place = service.place("config")
        where = error.where or place.where
        raise ConfigProblems([ConfigError(error.problem, option=place.option, where=where)]) from None


def _observers(service: Values, surroundings: Surroundings, ack: str) -> tuple[Observer, ...]:
    written = service.written("observer")
    if written is None:
        default = service.problems.attempt(service.place("observer"), default_observer, surroundings.environ)
        service.show("observer", default.text if default else "")
        return (default,) if default else ()
    observers: list[Observer] = []
    for value in written.values:
        place = written.place_of(value)
        observer = service.problems.attempt(place, _checked_observer, value.text, surroundings, ack)
        if observer is None:
            continue
        for name in secret_files(observer):
            _warn_of_readers(service, place, name)
        targets = {(each.name, each.args) for known in observers for each in _with_inner(known)}
        if any((each.name, each.args) in targets for each in _with_inner(observer)):
            shown = quoted_spec(value.text)
            service.problems.error(f"{shown} is there twice; each message would be written twice.", place)
        observers.append(observer)
    service.show("observer", " ".join(observer.text for observer in observers))
    return tuple(observers)


def _warn_of_readers(service: Values, place: Place, path: str) -> None:
    """Warn of a file of secrets that is anybody's to read. Whether it can be used is for the observer to say."""
    try:
        _, mode = read_file(path)
    except ConfigError:
        return
    if mode & OTHERS:
        service.problems.warn(f"{quoted(path)} can be read or written by every user: chmod 640 or less.", place)


def _with_inner(observer: Observer) -> tuple[Observer, ...]:
    return (observer,) if observer.inner is None else (observer, observer.inner)


def _checked_observer(text: str, surroundings: Surroundings, ack: str) -> Observer:
    observer = parse_observer(text)
    names = surroundings.observer_names
    for each in _with_inner(observer):
        if each.name not in names:
            hint = f"Write http:{each.name}://…" if each.name == "https" else suggestion(each.name, names)
            raise ConfigError(f"There is no observer {quoted(each.name)}. {hint}")
    surroundings.check_observer(observer, ack)
    return observer


def _limits(service: Values) -> Limits:
    values: dict[str, Any] = dict(DEFAULTS)
    origins = dict.fromkeys(values, DEFAULT)
    for layer in reversed(service.layers):
        written = layer.get("limit")
        if written is None:
            continue
        found: set[str] = set()
        for value in written.values:
            place = written.place_of(value)
            limit = service.problems.attempt(place, parse_limit, value.text)
            if limit is None:
                continue
            name, values[name] = limit
            origins[name] = origin(place)
            if name in found:
                service.problems.error(f"The limit {name} is there twice.", place)
            found.add(name)
    for name, number in values.items():
        service.effective.append(Effective("", f"limit {name}", show_limit(name, number), origins[name]))
    limits = Limits(**values)
    if limits.body > largest_body(limits.queue):
        service.problems.error(
            f"The queue of {show_limit('queue', limits.queue)} never has room for a body of "
            f"{show_limit('body', limits.body)}: bodies may take half of it.",
            service.place("limit"),
        )
    return limits
