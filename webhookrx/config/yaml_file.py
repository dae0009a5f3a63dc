"""
The configuration file: its keys and values as raw options, each with its line, and the references in values.

The file is read as a tree of nodes, never as Python values, so that C{auth_token: 0123} stays what was written, and
C{tls_peer_verify: "no"} means no. No error shows a value of the file whose meaning is not known: it may be a token.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from webhookrx.config.files import absolute, public_warning, read_file
from webhookrx.config.option import Kind, Option, OptionScope
from webhookrx.config.option_reader import ConfigFile, ConfigProblems, Origin, Problems, RawAlarm, RawSource, RawValue
from webhookrx.config.options import BY_YAML_KEY, shown_name
from webhookrx.config.specs import escaped, split_raw, unescaped
from webhookrx.diagnostics import Path, Position, quoted, suggestion
from webhookrx.errors import ConfigError
from webhookrx.typed_yaml.nodes import Broken, MappingNode, Node, ScalarNode, SequenceNode, compose, decode
from webhookrx.typed_yaml.typed_reader import Member, MistakeList, as_written, members, with_underscores

_SOURCE_KEYS: Final = [key for key, option in BY_YAML_KEY.items() if option.scope is OptionScope.SOURCE]

_ALARM_KEYS: Final = ("name", "kind", "when", "for", "above", "notify")
_TOP_KEYS: Final = (*BY_YAML_KEY, "sources", "name", "alarms", "alarm_targets")

_PLAIN_TAGS: Final = frozenset(
    f"tag:yaml.org,2002:{name}"
    for name in ("null", "bool", "int", "float", "timestamp", "str", "value", "merge", "seq", "map")
)
"""Those that leave a text what it is."""

_REFERENCE: Final = re.compile(r"(?P<escape>\$?)\$\{(?P<kind>env|file):(?P<name>[^}]*)(?P<end>\}?)")
_BARE: Final = re.compile(r"(?<!\$)\$\{([A-Za-z_]\w*)\}")

#: Observers with few templates, and the options that are; all others know themselves where they take one.
_OBSERVERS: Final = ("file", "http", "spool", "stdout", "syslog")
_TEMPLATES: Final = ("template", "app_name")


def read_config_file(path: str, problems: Problems, environ: Mapping[str, str], origin: Origin) -> ConfigFile:
    """
    Read a file. What is wrong inside of it is noted, and the rest is returned.

    @param path: as its user wrote it; the places of errors begin with it.
    @param environ: the environment, for values that refer to it.
    @param origin: where the path was written.
    @raise ConfigProblems: the file can't be read, is not UTF-8, not YAML, or holds nothing: a file that is being
        written must not be taken for one that wants defaults, such as a port without a token.
    """
    try:
        data, _ = read_file(path)
        return _ConfigReader(path, problems, environ).read(compose(decode(data)))
    except ConfigError as error:
        problems.error(error.problem, origin)
        raise ConfigProblems(problems.errors) from None
    except Broken as broken:
        is_empty = broken.code == "empty-file"
        sentence = "The file holds no settings; write at least port:" if is_empty else broken.sentence
        problems.error(sentence, Origin(origin.path, path, broken.position.line))
        raise ConfigProblems(problems.errors) from None


class _ConfigMistakes(MistakeList):
    """Hands mistakes on as problems of the configuration, which have no codes."""

    def __init__(self, file: str, problems: Problems) -> None:
        super().__init__(shown_key=shown_name, plain_tags=_PLAIN_TAGS)
        self._file = file
        self._problems = problems

    def add(self, code: str, position: Position, path: Path, sentence: str) -> None:
        super().add(code, position, path, sentence)
        self._problems.error(sentence, Origin(path, self._file, position.line))


class _ConfigReader:
    """Turns the nodes of one file into raw options, and notes what is wrong with them."""

    def __init__(self, file: str, problems: Problems, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._file = file
        self._problems = problems
        self._mistakes = _ConfigMistakes(file, problems)

    def read(self, root: Node) -> ConfigFile:
        if not isinstance(root, MappingNode):
            self._error(root, (), "The file holds no keys; it begins for example with sources: or port:")
            return ConfigFile({})
        sources: tuple[RawSource, ...] | None = None
        name: RawValue | None = None
        options: dict[str, tuple[RawValue, ...]] = {}
        alarms: tuple[RawAlarm, ...] = ()
        targets: dict[str, RawValue] = {}
        for key, key_node, value in self._members(root, ()):
            if key == "sources":
                sources = self._sources(value)
            elif key == "name":
                name = self._scalar(value, ("name",))
            elif key == "alarms":
                alarms = self._alarms(value)
            elif key == "alarm_targets":
                targets = self._alarm_targets(value)
            elif key in BY_YAML_KEY:
                self._option(options, key, key_node, value, ())
            else:
                self._unknown(key, key_node, (), _TOP_KEYS)
        if name is not None and sources is not None:
            self._problems.error("A name belongs to one source: write it into an item of sources:", name.origin)
        return ConfigFile(options, name, sources, alarms, targets)

    def _sources(self, node: Node) -> tuple[RawSource, ...]:
        path = ("sources",)
        if not isinstance(node, SequenceNode) or not node.items or not self._mistakes.is_untagged(node, path):
            self._error(node, path, "It takes a list with at least one source; leave it out for a single one.")
            return ()
        return tuple(self._source(item, (*path, index)) for index, item in enumerate(node.items))

    def _source(self, node: Node, path: Path) -> RawSource:
        name: RawValue | None = None
        options: dict[str, tuple[RawValue, ...]] = {}
        if not isinstance(node, MappingNode):
            self._error(node, path, "A source is written as keys and values, such as port: 8181.")
        for key, key_node, value in self._members(node, path) if isinstance(node, MappingNode) else ():
            option = BY_YAML_KEY.get(key)
            if key == "name":
                name = self._scalar(value, (*path, "name"))
            elif option is None:
                self._unknown(key, key_node, path, [*_SOURCE_KEYS, "name"])
            elif option.scope is not OptionScope.SOURCE:
                self._error(key_node, (*path, key), "It holds for the whole service: move it to the top level.")
            else:
                self._option(options, key, key_node, value, path)
        return RawSource(self._origin(node, path), name, options)

    def _alarms(self, node: Node) -> tuple[RawAlarm, ...]:
        path = ("alarms",)
        if not isinstance(node, SequenceNode) or not node.items or not self._mistakes.is_untagged(node, path):
            self._error(node, path, "It takes a list with at least one alarm; leave it out for none.")
            return ()
        alarms = (self._alarm(item, (*path, index)) for index, item in enumerate(node.items))
        return tuple(each for each in alarms if each is not None)

    def _alarm(self, node: Node, path: Path) -> RawAlarm | None:
        values: dict[str, RawValue] = {}
        if not isinstance(node, MappingNode):
            self._error(
                node, path, "An alarm is written as keys and values, such as {name: quiet, kind: silent, for: 6h}."
            )
            return None
        for key, key_node, value in self._members(node, path):
            if key not in _ALARM_KEYS:
                self._unknown(key, key_node, path, _ALARM_KEYS)
                continue
            text = self._scalar(value, (*path, key))
            if text is not None:
                values[key] = text
        return RawAlarm(self._origin(node, path), values)

    def _alarm_targets(self, node: Node) -> dict[str, RawValue]:
        path = ("alarm_targets",)
        targets: dict[str, RawValue] = {}
        if not isinstance(node, MappingNode):
            self._error(node, path, "It takes names and URLs, such as {ops: 'https://alerts.example.com/hook'}.")
            return targets
        for key, _, value in self._members(node, path, is_label=True):
            url = self._scalar(value, (*path, key))
            if url is not None:
                targets[key] = url
        return targets

    def _option(
        self, options: dict[str, tuple[RawValue, ...]], key: str, key_node: Node, node: Node, owner: Path
    ) -> None:
        option, path = BY_YAML_KEY[key], (*owner, key)
        if option.name in options:
            other = options[option.name][0].origin.path[-1]
            self._error(key_node, path, f"It is the same as {other}, which is there already.")
            return
        values = tuple(self._values(option, node, path))
        if values:
            options[option.name] = values

    def _values(self, option: Option, node: Node, path: Path) -> Iterator[RawValue]:
        is_mapping = isinstance(node, MappingNode)
        if option.kind is Kind.LIMITS or (is_mapping and option.kind in (Kind.LABELS, Kind.SETTINGS, Kind.NETWORKS)):
            yield from self._named_values(option, node, path)
        elif isinstance(node, SequenceNode) and option.repeat and self._mistakes.is_untagged(node, path):
            if not node.items:
                self._error(node, path, "The list is empty; leave the key out for the default.")
            for index, item in enumerate(node.items):
                value = self._scalar(item, (*path, index), is_spec=option.is_spec)
                if value is not None:
                    yield RawValue(value.text, value.origin._replace(path=path))
        else:
            value = self._scalar(node, path, is_spec=option.is_spec, list_too=option.repeat)
            if value is not None:
                yield value

    def _named_values(self, option: Option, node: Node, path: Path) -> Iterator[RawValue]:
        if not isinstance(node, MappingNode):
            self._error(node, path, "It takes names and values, such as {body: 10MiB, connections: 10000}.")
            return
        for key, _, member in self._members(node, path, is_label=option.kind is not Kind.LIMITS):
            for value in self._named(option, member, (*path, key)):
                yield RawValue(f"{key}={value.text}", value.origin._replace(path=path))

    def _named(self, option: Option, node: Node, path: Path) -> Iterator[RawValue]:
        """Yield the value of a name; several of a list, and a file with a place in it, where the option has these."""
        if option.kind is Kind.SETTINGS and isinstance(node, SequenceNode) and self._mistakes.is_untagged(node, path):
            for index, item in enumerate(node.items):
                value = self._scalar(item, (*path, index))
                if value is not None:
                    yield value
        elif option.kind is Kind.NETWORKS and isinstance(node, MappingNode):
            yield from self._file_with_place(node, path)
        else:
            value = self._scalar(node, path)
            if value is not None:
                yield value

    def _file_with_place(self, node: MappingNode, path: Path) -> Iterator[RawValue]:
        """Yield C{FILE#POINTER} of C{{file: FILE, at: POINTER}}."""
        found: dict[str, RawValue | None] = {}
        for key, key_node, member in self._members(node, path):
            found[key] = self._scalar(member, (*path, key))
            if key not in ("file", "at"):
                self._unknown(key, key_node, path, ["file", "at"])
        file, at = found.get("file"), found.get("at")
        if file is not None:
            yield RawValue(f"{file.text}#{at.text if at is not None else ''}", file.origin)
        elif found.keys() <= {"at"}:
            self._error(node, path, "It takes a file, such as {file: /etc/webhookrx/networks, at: /hooks}.")

    def _members(self, node: MappingNode, path: Path, *, is_label: bool = False) -> Iterator[Member]:
        return members(node, path, as_written if is_label else with_underscores, self._mistakes)

    def _scalar(self, node: Node, path: Path, *, is_spec: bool = False, list_too: bool = False) -> RawValue | None:
        """
        Return a value as it was written, with what it refers to in place; None, and an error noted, when it is no plain
        value.

        @param is_spec: it is an endpoint or observer string.
        @param list_too: a list of values was possible.
        """
        self._mistakes.visit(node)
        if not isinstance(node, ScalarNode):
            or_list = " or a list of values" if list_too else ""
            self._error(node, path, f"It takes one value{or_list}.{_unintended_mapping(node)}")
        elif self._mistakes.is_untagged(node, path):
            if not node.is_nothing():
                return self._filled(node.text, self._origin(node, path), is_spec=is_spec)
            self._error(node, path, "It has no value; leave the key out for the default.")
        return None

    def _filled(self, text: str, origin: Origin, *, is_spec: bool) -> RawValue | None:
        bare = bare_reference(text, is_spec=is_spec)
        if bare is not None:
            sentence = f"${{{bare}}} stands for nothing here; an environment variable is written as ${{env:{bare}}}."
            self._problems.error(sentence, origin)
            return None
        references = References(self._environ, lambda warning: self._problems.warn(warning, origin))
        filled = self._problems.attempt(origin, partial(references.filled, is_spec=is_spec), text)
        return None if filled is None else RawValue(filled, origin)

    def _unknown(self, key: str, node: Node, owner: Path, known: Sequence[str]) -> None:
        self._error(node, owner, f'There is no key "{shown_name(key)}". {suggestion(key, known)}')

    def _error(self, node: Node, path: Path, sentence: str) -> None:
        self._mistakes.add("bad-value", node.position, path, sentence)

    def _origin(self, node: Node, path: Path) -> Origin:
        return Origin(path, self._file, node.position.line)


def _unintended_mapping(node: Node) -> str:
    """Say how a text became a mapping to YAML; nothing when it was meant to be one."""
    if not isinstance(node, MappingNode) or node.in_braces:
        return ""
    return " YAML reads a mapping here, because of the colon with a blank behind it: write the whole text in quotes."


class References:
    """
    Puts in what values refer to.

    @param environ: the environment.
    @param warn: told of a file that every user can read.
    """

    def __init__(self, environ: Mapping[str, str], warn: Callable[[str], object]) -> None:
        self._environ = environ
        self._warn = warn

    def filled(self, text: str, *, is_spec: bool) -> str:
        """
        Return a value with what it refers to in place.

        @param is_spec: it is an endpoint or observer string: what comes into it is escaped, unless it is all of it.
        @raise ConfigError: a variable is not set, a file can't be read, or a reference does not end.
        """
        if "${" not in text:
            return text
        whole = _REFERENCE.fullmatch(text)
        if whole is not None and not whole["escape"]:
            return self._value(whole)
        return _REFERENCE.sub(lambda found: self._in_place(found, is_spec), text)

    def _in_place(self, found: re.Match[str], is_spec: bool) -> str:
        if found["escape"]:
            return found[0].removeprefix("$")
        value = self._value(found)
        return escaped(value) if is_spec else value

    def _value(self, found: re.Match[str]) -> str:
        kind, name = found["kind"], found["name"]
        if not found["end"]:
            raise ConfigError(f"A reference that begins with ${{{kind}: has no }} at its end.")
        if not name:
            raise ConfigError(f"${{{kind}:}} names nothing; it is written as ${{env:NAME}} or ${{file:PATH}}.")
        if kind == "file":
            return self._content(absolute(name))
        if name not in self._environ:
            raise ConfigError(f"The environment variable {quoted(name)} is not set.")
        return self._environ[name]

    def _content(self, path: str) -> str:
        data, mode = read_file(path)
        warning = public_warning(path, mode)
        if warning:
            self._warn(warning)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise ConfigError(f"{quoted(path)} is not UTF-8 text.") from None
        return text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text


def bare_reference(text: str, *, is_spec: bool) -> str | None:
    """
    Return the first C{NAME} of a C{${NAME}} where no template is wanted, so that it is probably meant to be a
    reference; None when there is none.

    @param text: a value as it is written.
    @param is_spec: it is an endpoint or observer string.
    """
    if "${" not in text:
        return None
    found = _bare_in_spec(text) if is_spec else _BARE.search(text)
    return found and found[1]


def _bare_in_spec(text: str) -> re.Match[str] | None:
    parts = split_raw(text)
    if not (parts[0] in _OBSERVERS or _BARE.search(parts[0])):
        return None
    for number, part in enumerate(parts):
        key, equals, value = part.partition("=")
        if equals and key == "observer":
            if "\\:" not in value:
                # All that follows is the observer's, whose templates are its own to know.
                return _bare_in_spec(":".join((value, *parts[number + 1 :])))
            found = _bare_in_spec(unescaped(value))
        elif equals and key in _TEMPLATES:
            found = None
        else:
            found = _BARE.search(part)
        if found is not None:
            return found
    return None
