"""
The configuration file: its keys and values as raw options, each with its line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

import yaml

from webhookrx.config.files import absolute, read_file
from webhookrx.config.option_reader import ConfigFile, Entry, Place, Problems, Text, Written
from webhookrx.config.options import BY_YAML_KEY, Kind, Option, Scope, shown_name
from webhookrx.config.pem import OTHERS
from webhookrx.config.specs import escaped, split_raw, unescaped
from webhookrx.diagnostics import quoted, suggestion
from webhookrx.errors import ConfigError

_SOURCE_KEYS = [key for key, option in BY_YAML_KEY.items() if option.scope is Scope.SOURCE]

_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS = frozenset(
    _TAG + name for name in ("null", "bool", "int", "float", "timestamp", "str", "value", "merge", "seq", "map")
)


def read_config_file(path: str, problems: Problems, environ: Mapping[str, str]) -> ConfigFile:
    """
    Read a file. What is wrong inside of it is noted, and the rest is returned.

    @param path: as its user wrote it; the places of errors begin with it.
    @param environ: the environment, for values that refer to it.
    @raise ConfigError: the file can't be read, is not UTF-8, not YAML, or holds nothing: a file that is being written
        must not be taken for one that wants defaults, such as a port without a token.
    """
    root = _compose(path)
    if root is None or _is_nothing(root):
        raise ConfigError("The file holds no settings; write at least port:", where=path)
    return _Reader(path, problems, environ).read(root)


def _compose(path: str) -> yaml.Node | None:
    data, _ = read_file(path)
    try:
        loader = yaml.SafeLoader(data.decode("utf-8-sig"))
        try:
            return loader.get_single_node()
        finally:
            loader.dispose()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError("The file is not UTF-8 text.", where=f"{path}:{line}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise ConfigError(f"This is not YAML: {_without_values(error)}.", where=f"{path}:{line}") from None
    except yaml.reader.ReaderError as error:
        line = data.decode("utf-8-sig")[: error.position].count("\n") + 1
        raise ConfigError("This is not YAML: control characters are not allowed.", where=f"{path}:{line}") from None
    except RecursionError:
        raise ConfigError("This is not YAML that can be read: it is nested too deeply.", where=path) from None


def _is_nothing(node: yaml.Node) -> bool:
    """Whether a node is nothing, or null without quotes."""
    return isinstance(node, yaml.ScalarNode) and node.tag == f"{_TAG}null" and node.style is None


def _without_values(error: yaml.MarkedYAMLError) -> str:
    """Return what the parser says, less the names of aliases and tags: an unquoted token can look like one."""
    said = ", ".join(part for part in (error.context, error.problem) if part)
    return re.sub(r"(alias|anchor|handle) (['\"]).*?\2", r"\1 (not shown)", said)


def _why(node: yaml.Node) -> str:
    """Say how a text became something else to YAML; nothing when it was meant to be that."""
    if not isinstance(node, yaml.MappingNode) or node.flow_style:
        return ""
    return " YAML reads a mapping here, because of the colon with a blank behind it: write the whole text in quotes."


class _Reader:
    """Turns the nodes of one file into texts, and notes what is wrong with them."""

    def __init__(self, path: str, problems: Problems, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._path = path
        self._problems = problems

    def read(self, root: yaml.Node) -> ConfigFile:
        if not isinstance(root, yaml.MappingNode):
            self._error(root, "", "The file holds no keys; it begins for example with sources: or port:")
            return ConfigFile({})
        entries: tuple[Entry, ...] | None = None
        name: Text | None = None
        values: dict[str, Written] = {}
        for key, key_node, node in self._pairs(root, ""):
            if key == "sources":
                entries = self._entries(node)
            elif key == "name":
                name = self._scalar(node, "name")
            elif key in BY_YAML_KEY:
                self._option(values, key, key_node, node, "")
            else:
                self._unknown(key, key_node, "", [*BY_YAML_KEY, "sources", "name"])
        if name is not None and entries is not None:
            place = Place("name", name.where)
            self._problems.error("A name belongs to one source: write it into an item of sources:", place)
        return ConfigFile(values, name, entries)

    def _entries(self, node: yaml.Node) -> tuple[Entry, ...]:
        if not isinstance(node, yaml.SequenceNode) or not node.value or not self._plain(node, "sources"):
            self._error(node, "sources", "It takes a list with at least one source; leave it out for a single one.")
            return ()
        return tuple(self._entry(item, f"sources[{index}]") for index, item in enumerate(node.value))

    def _entry(self, node: yaml.Node, label: str) -> Entry:
        name: Text | None = None
        values: dict[str, Written] = {}
        if not isinstance(node, yaml.MappingNode):
            self._error(node, label, "A source is written as keys and values, such as port: 8181.")
        for key, key_node, value in self._pairs(node, label) if isinstance(node, yaml.MappingNode) else ():
            option = BY_YAML_KEY.get(key)
            if key == "name":
                name = self._scalar(value, f"{label}.name")
            elif option is None:
                self._unknown(key, key_node, label, [*_SOURCE_KEYS, "name"])
            elif option.scope is not Scope.SOURCE:
                self._error(key_node, f"{label}.{key}", "It holds for the whole service: move it to the top level.")
            else:
                self._option(values, key, key_node, value, label)
        return Entry(Place(label, self._where(node)), name, values)

    def _option(self, values: dict[str, Written], key: str, key_node: yaml.Node, node: yaml.Node, owner: str) -> None:
        option = BY_YAML_KEY[key]
        label = f"{owner}.{key}" if owner else key
        if option.name in values:
            self._error(key_node, label, f"It is the same as {values[option.name].label}, which is there already.")
            return
        texts = tuple(self._texts(option, node, label))
        if texts:
            values[option.name] = Written(label, texts)

    def _texts(self, option: Option, node: yaml.Node, label: str) -> Iterator[Text]:
        if option.kind is Kind.LIMITS or (option.kind is Kind.LABELS and isinstance(node, yaml.MappingNode)):
            yield from self._named_values(option, node, label)
        elif isinstance(node, yaml.SequenceNode) and option.repeat and self._plain(node, label):
            if not node.value:
                self._error(node, label, "The list is empty; leave the key out for the default.")
            for index, item in enumerate(node.value):
                text = self._scalar(item, f"{label}[{index}]", option=option)
                if text is not None:
                    yield text
        else:
            text = self._scalar(node, label, option=option, list_too=option.repeat)
            if text is not None:
                yield text

    def _named_values(self, option: Option, node: yaml.Node, label: str) -> Iterator[Text]:
        if not isinstance(node, yaml.MappingNode):
            self._error(node, label, "It takes names and values, such as {body: 10MiB, connections: 10000}.")
            return
        for key, _, value in self._pairs(node, label, as_written=option.kind is Kind.LABELS):
            text = self._scalar(value, f"{label}.{key}")
            if text is not None:
                yield Text(f"{key}={text.text}", text.where)

    def _scalar(
        self, node: yaml.Node, label: str, *, option: Option | None = None, list_too: bool = False
    ) -> Text | None:
        """
        Return a value as it was written, with what it refers to in place; None, and an error noted, when it is no plain
        value.
        """
        if not isinstance(node, yaml.ScalarNode):
            self._error(node, label, f"It takes one value{' or a list of values' if list_too else ''}.{_why(node)}")
        elif _is_nothing(node):
            self._error(node, label, "It has no value; leave the key out for the default.")
        elif self._plain(node, label):
            return self._filled(node, Place(label, self._where(node)), is_spec=option is not None and option.is_spec)
        return None

    def _filled(self, node: yaml.ScalarNode, place: Place, *, is_spec: bool) -> Text | None:
        bare = bare_reference(node.value, is_spec=is_spec)
        if bare is not None:
            problem = f"${{{bare}}} stands for nothing here; an environment variable is written as ${{env:{bare}}}."
            self._problems.error(problem, place)
            return None
        references = References(self._environ, lambda warning: self._problems.warn(warning, place))
        text = self._problems.attempt(place, partial(references.filled, is_spec=is_spec), node.value)
        return None if text is None else Text(text, place.where)

    def _pairs(
        self, node: yaml.MappingNode, label: str, *, as_written: bool = False
    ) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
        """Yield key with C{_}, unless it stays as written, key node and value; a key that is twice is an error."""
        seen: dict[str, yaml.Node] = {}
        merges: list[yaml.Node] = []
        for key_node, value in node.value if self._plain(node, label) else ():
            if not isinstance(key_node, yaml.ScalarNode) or not self._plain(key_node, label):
                self._error(key_node, label, "A key is plain text.")
                continue
            if key_node.tag == f"{_TAG}merge":
                merges.append(value)
                continue
            key = key_node.value if as_written else key_node.value.replace("-", "_")
            if key in seen:
                first = self._where(seen[key]).removeprefix(f"{self._path}:")
                self._error(key_node, label, f'The key "{shown_name(key)}" is there twice, first in line {first}.')
                continue
            seen[key] = key_node
            yield key, key_node, value
        for merge in merges:
            yield from self._merged(merge, seen, label)

    def _merged(
        self, merge: yaml.Node, seen: dict[str, yaml.Node], label: str
    ) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
        """Yield what C{<<} brings in (YAML 1.1, merge key): the pairs whose key is not there yet."""
        for other in merge.value if isinstance(merge, yaml.SequenceNode) else (merge,):
            if not isinstance(other, yaml.MappingNode) or any(key.value == "<<" for key, _ in other.value):
                self._error(merge, label, "<< takes a mapping, or a list of mappings, without a << of their own.")
                continue
            for key, key_node, value in self._pairs(other, label):
                if key not in seen:
                    seen[key] = key_node
                    yield key, key_node, value

    def _unknown(self, key: str, node: yaml.Node, owner: str, known: list[str]) -> None:
        self._error(node, owner, f'There is no key "{shown_name(key)}". {suggestion(key, known)}')

    def _plain(self, node: yaml.Node, label: str) -> bool:
        """Whether a node is of the safe schema; an error is noted when it is not."""
        if node.tag in _PLAIN_TAGS:
            return True
        self._error(node, label, "YAML tags are not used here; a value that begins with ! is written in quotes.")
        return False

    def _error(self, node: yaml.Node, label: str, problem: str) -> None:
        self._problems.error(problem, Place(label, self._where(node)))

    def _where(self, node: yaml.Node) -> str:
        return f"{self._path}:{node.start_mark.line + 1}"


_REFERENCE: Final = re.compile(r"(?P<escape>\$?)\$\{(?P<kind>env|file):(?P<name>[^}]*)(?P<end>\}?)")
_BARE: Final = re.compile(r"(?<!\$)\$\{([A-Za-z_]\w*)\}")

#: Observers of ours, and their options that are templates; those of plugins are theirs to know.
_OBSERVERS: Final = ("file", "http", "spool", "stdout", "syslog")
_TEMPLATES: Final = ("template", "app_name")


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
        if mode & OTHERS:
            self._warn(f"{quoted(path)} can be read or written by every user: chmod 640 or less.")
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
    for part in parts:
        key, equals, value = part.partition("=")
        if equals and key == "observer":
            found = _bare_in_spec(unescaped(value) if "\\:" in value else value)
        elif equals and key in _TEMPLATES:
            found = None
        else:
            found = _BARE.search(part)
        if found is not None:
            return found
    return None
