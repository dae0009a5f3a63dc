"""
The observers of a service: their spec strings, C{name:arg:key=value}, read without opening anything.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from webhookrx.config.files import absolute, default_state_dir, public_warning, read_file
from webhookrx.config.option_reader import OptionReader, Origin, Problems
from webhookrx.config.specs import escaped, quoted_spec, split_raw, split_spec, unescaped
from webhookrx.diagnostics import quoted, suggestion
from webhookrx.errors import ConfigError
from webhookrx.settings import MESSAGE_FILE, Observer

#: The beginning of an option; an argument may hold C{=}, too, as the query of a URL does.
_OPTION = re.compile(r"[a-z][a-z0-9_-]*=")


class Argument(Enum):
    """What the first argument of an observer is, where the grammar of endpoint strings would need backslashes."""

    PLAIN = "plain"
    FILE = "file"
    """A file that the observer writes."""
    URL = "url"
    """A URL, whose colons are no separators."""
    ADDRESS = "address"
    """A host, which may be an IPv6 address in brackets."""


class OptionText(NamedTuple):
    """
    What the docs say of an option, in Markdown.

    @ivar default: what holds without it.
    """

    default: str
    meaning: str


class ObserverSpec(NamedTuple):
    """
    What an observer declares of its spec string.

    @ivar options: the names of its options.
    @ivar files: those options that name files. Their paths are made absolute.
    @ivar secrets: those files that only their owner should be able to read.
    @ivar needs_spool: it works only behind a spool, which gathers the large batches that it needs.
    @ivar texts: what the docs say of its options, besides L{webhookrx.config.store_options.COMMON_TEXTS}.
    @ivar note: returns what C{--check} prints besides of a spec string without mistakes, by its arguments and options.
    """

    options: tuple[str, ...] = ()
    argument: Argument = Argument.PLAIN
    files: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    needs_spool: bool = False
    texts: Mapping[str, OptionText] = MappingProxyType({})
    note: Callable[[Sequence[str], Mapping[str, str]], str] | None = None


#: Returns the declaration of an observer by its name; an empty one for names of plugins.
FindSpec: TypeAlias = Callable[[str], ObserverSpec]


class KnownObservers(NamedTuple):
    """
    The observers that specs may name.

    @ivar names: the first words of their specs.
    @ivar check: makes an observer for an acknowledgement level, opens nothing, and returns sentences on what is allowed
        but probably not meant; raises C{ConfigError}.
    """

    names: Collection[str]
    check: Callable[[Observer, str], Sequence[str]]
    find_spec: FindSpec


def read_observers(
    options: OptionReader, known: KnownObservers, environ: Mapping[str, str], ack: str
) -> tuple[Observer, ...]:
    """
    Return the observers of a options. Mistakes are noted.

    @param environ: environment variables.
    @param ack: the acknowledgement level.
    """
    values = options.raw("observer")
    if not values:
        default = options.attempt("observer", default_observer, environ, known.find_spec)
        options.show("observer", default.text if default else "")
        return (default,) if default else ()
    observers: list[Observer] = []
    for value in values:
        checked = options.problems.attempt(value.origin, _checked_observer, value.text, known, ack)
        if checked is None:
            continue
        observer, warnings = checked
        for warning in warnings:
            options.problems.warn(warning, value.origin)
        for name in secret_files(observer, known.find_spec):
            _warn_of_readers(options.problems, value.origin, name)
        targets = {(each.name, each.args) for other in observers for each in _with_inner(other)}
        if any((each.name, each.args) in targets for each in _with_inner(observer)):
            shown = quoted_spec(value.text)
            options.problems.error(f"{shown} is given twice; each message would be written twice.", value.origin)
        observers.append(observer)
    options.show("observer", " ".join(observer.text for observer in observers))
    return tuple(observers)


def _warn_of_readers(problems: Problems, origin: Origin, path: str) -> None:
    """Warn of a file of secrets that everybody can read. Whether it can be used is for the observer to check."""
    try:
        _, mode = read_file(path)
    except ConfigError:
        return
    warning = public_warning(path, mode)
    if warning:
        problems.warn(warning, origin)


def _with_inner(observer: Observer) -> tuple[Observer, ...]:
    return (observer,) if observer.inner is None else (observer, observer.inner)


def _checked_observer(text: str, known: KnownObservers, ack: str) -> tuple[Observer, Sequence[str]]:
    """Return an observer, and the warnings of its check."""
    observer = parse_observer(text, known.find_spec)
    for each in _with_inner(observer):
        if each.name not in known.names:
            hint = f"Write http:{each.name}://…" if each.name == "https" else suggestion(each.name, known.names)
            raise ConfigError(f"There is no observer {quoted(each.name)}. {hint}")
    return observer, known.check(observer, ack)


def parse_observer(text: str, find_spec: FindSpec) -> Observer:
    """
    Read a spec string. File names are made absolute: twistd changes its directory later.

    C{spool:} has a grammar of its own: C{observer=} takes a spec string.

    @raise ConfigError: the name is missing, the grammar is broken, or a directory does not exist.
    """
    name = unescaped(split_raw(text)[0])
    if not name or _OPTION.match(name):
        raise ConfigError(f"{quoted_spec(text)} names no observer; write for example file:messages.jsonl or stdout.")
    if name == "spool":
        return _spool(text, find_spec)
    spec = find_spec(name)
    args, options = _with_url(text, spec.options) if spec.argument is Argument.URL else split_spec(text)
    rest = args[1:]
    if spec.argument is Argument.FILE and rest and rest[0]:
        rest = [_writable_place(text, rest[0]), *rest[1:]]
    if spec.argument is Argument.ADDRESS:
        rest = _in_brackets(rest)
    options = {key: absolute(value) if key in spec.files and value else value for key, value in options.items()}
    return Observer(text=text, name=name, args=tuple(rest), options=tuple(options.items()))


def _with_url(text: str, known: Collection[str]) -> tuple[list[str], dict[str, str]]:
    """
    Split C{name:URL:key=value}: all up to the first option is the URL.

    @param known: the names of options.
    @raise ConfigError: the grammar is broken, or a password in the URL looks like an option; it is not quoted.
    """
    name, *parts = split_raw(text)
    url: list[str] = []
    while parts and not _OPTION.match(parts[0]):
        url.append(parts.pop(0))
    place = re.split("[/?#]", text.partition("://")[2])[0]
    if "@" in place and any(part.partition("=")[0] not in known for part in parts):
        raise ConfigError(f"observer {name!r}: no user or password in the URL: it is seen in logs and process lists.")
    args, options = split_spec(":".join((name, *parts)))
    return [*args[:1], *([unescaped(":".join(url))] if url else []), *args[1:]], options


def _in_brackets(args: Sequence[str]) -> list[str]:
    """Join the arguments that are one IPv6 address in brackets, and leave out the brackets."""
    text = ":".join(args)
    found = re.search(r"\[([^\[\]]*)\]", text)
    if found is None:
        return list(args)
    before, after = text[: found.start()], text[found.end() :]
    return [*before.rstrip(":").split(":"), found[1], *(after.lstrip(":").split(":") if after else [])]


def _spool(text: str, find_spec: FindSpec) -> Observer:
    """
    Read C{spool:DIR:key=value:observer=SPEC}.

    C{observer=} comes last, and all behind it is the inner spec string as it is. With escaped colons, as in endpoint
    strings, it may stand anywhere.
    """
    parts = split_raw(text)
    begins = [number for number, part in enumerate(parts) if part.startswith("observer=")]
    if not begins:
        raise ConfigError(f"{quoted_spec(text)} has no observer=, the observer behind the spool.")
    begin = begins[0]
    value = parts[begin].removeprefix("observer=")
    if "\\:" in value:
        inner, behind = unescaped(value), parts[begin + 1 :]
    else:
        inner, behind = ":".join((value, *parts[begin + 1 :])), []
    args, options = split_spec(":".join((*parts[:begin], *behind)))
    if len(args) != 2 or not args[1]:
        raise ConfigError(f"{quoted_spec(text)} needs one directory: spool:DIR:observer=SPEC.")
    parsed = parse_observer(inner, find_spec)
    if parsed.inner is not None:
        raise ConfigError(f"{quoted_spec(text)} puts a spool into a spool.")
    return Observer(text, "spool", (_spool_place(text, args[1]),), tuple(options.items()), parsed)


def secret_files(observer: Observer, find_spec: FindSpec) -> list[str]:
    """Return the files of secrets that an observer, or its inner observer, reads."""
    if observer.inner is not None:
        return secret_files(observer.inner, find_spec)
    return [value for key, value in observer.options if key in find_spec(observer.name).secrets]


def check_notes(observers: Sequence[Observer], find_spec: FindSpec) -> list[str]:
    """Return what C{--check} prints of observers besides."""
    ends = [observer.inner or observer for observer in observers]
    notes = [(find_spec(end.name).note, end) for end in ends]
    return [note(end.args, dict(end.options)) for note, end in notes if note is not None]


def written_paths(observer: Observer, find_spec: FindSpec) -> list[str]:
    """Return the files and directories that an observer, and its inner observer, write."""
    if observer.inner is not None:
        return [*observer.args[:1], *written_paths(observer.inner, find_spec)]
    return list(observer.args[:1]) if find_spec(observer.name).argument is Argument.FILE else []


def default_observer(environ: Mapping[str, str], find_spec: FindSpec) -> Observer:
    """Return the observer of a service without the option: a file in the state directory, else here."""
    path = absolute(os.path.join(default_state_dir(environ) or "", MESSAGE_FILE))
    return parse_observer(f"file:{escaped(path)}", find_spec)


def _writable_place(text: str, path: str) -> str:
    path = absolute(path)
    directory = os.path.dirname(path)
    if os.path.isdir(path):
        raise ConfigError(f"{quoted_spec(text)}: {quoted(path)} is a directory; a file name is needed.")
    if not os.path.isdir(directory):
        raise ConfigError(f"{quoted_spec(text)}: the directory {quoted(directory)} does not exist.")
    return path


def _spool_place(text: str, path: str) -> str:
    """Check the directory of a spool, which makes it, but not its parent."""
    path = absolute(path)
    around = os.path.dirname(path)
    if os.path.exists(path) and not os.path.isdir(path):
        raise ConfigError(f"{quoted_spec(text)}: {quoted(path)} is not a directory.")
    if not os.path.isdir(around):
        raise ConfigError(f"{quoted_spec(text)}: the directory {quoted(around)} does not exist.")
    return path
