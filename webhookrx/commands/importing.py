"""
C{webhookrx import collector}: the webhooks of a collector as sources of ours, with a comment on each option that means
something else here.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final, TextIO

from webhookrx.commands.collector_text import Collector, CollectorOption, CollectorProblem, Driver, read_collector
from webhookrx.commands.terminal import DONE, FAILED, Verbs, read_text, safe

_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME: Final = 60
_PLAIN: Final = re.compile(r"[A-Za-z/][\w./-]*")
_WORDS: Final = {
    "yes": True,
    "on": True,
    "true": True,
    "1": True,
    "no": False,
    "off": False,
    "false": False,
    "0": False,
}

#: Options that have nothing to be carried over to, and why they need none.
_NOT_NEEDED: Final = {
    "persist_name": "not needed: any number of sources may stand here, and two may share a port",
    "keep_hostname": "not needed: a path group named HOST, and a member HOST of a payload, set the host",
    "use_dns": "not needed: names are never looked up",
    "dns_cache": "not needed: names are never looked up",
    "use_fqdn": "not needed: names are never looked up",
    "normalize_hostnames": "not needed: names are never looked up",
    "check_hostname": "not needed: names are never looked up",
    "chain_hostnames": "has no effect on webhooks",
    "log_iw_size": "see limits.queue_messages: room is counted in bytes and messages, of all sources together",
    "log_fetch_limit": "has no effect on webhooks",
    "flags": "not needed: there is always flow control, and bodies are not parsed as syslog",
    "keep_timestamp": "not needed: a message has the time of its receipt",
    "internal": "the log of the service is apart from messages",
}
_LOST: Final = {
    "tags": "TAGS is .source.NAME here; a template of an observer can hold fixed text",
    "program_override": "a template of an observer can hold fixed text",
    "host_override": "a template of an observer can hold fixed text",
    "default_level": "the syslog observer has severity=",
    "default_priority": "the syslog observer has severity=",
    "default_severity": "the syslog observer has severity=",
    "default_facility": "the syslog observer has facility=",
    "hook_commands": "no commands are run at start and stop; systemd can",
    "sdata_prefix": "structured data is not read from payloads",
    "format": "payloads are not parsed as anything but JSON",
    "time_zone": "a message has the time of its receipt",
}


class _Lost(Exception):
    """Why an option can't be carried over."""


@dataclass
class _ImportedSource:
    """
    A source of ours in the making.

    @ivar lines: without indentation.
    @ivar interface: the address to listen on; empty for all.
    """

    driver: Driver
    lines: list[str] = field(default_factory=list)
    interface: str = ""
    mistakes: list[CollectorProblem] = field(default_factory=list)

    def put(self, key: str, value: str, comment: str = "") -> None:
        """Add an option, with a comment before it."""
        if comment:
            self.note(comment)
        self.lines.append(f"{key}: {value}")

    def note(self, comment: str) -> None:
        """Add a comment."""
        self.lines.append(f"# {comment}")


def as_yaml(found: Collector) -> tuple[str, list[CollectorProblem]]:
    """Return a configuration of ours, and what can't be carried over. Without webhooks it is empty."""
    drafts = []
    names: set[str] = set()
    mistakes = list(found.mistakes)
    for number, driver in enumerate(found.drivers, 1):
        draft = _source(driver, _unique(_source_name(driver, number), names))
        mistakes += draft.mistakes
        drafts.append(draft)
    if not drafts:
        return "", mistakes
    lines = [
        "# Destinations, parsers, filters and log paths are not carried over: say under observers: where messages go."
    ]
    lines += [f"# The file {json.dumps(name)} was not read." for name in found.includes if name != "scl.conf"]
    if any(_has_token(draft.driver) and not _has_key(draft.driver) for draft in drafts):
        lines.append("# A token over plain HTTP can be read in transit. The collector allows it; here it must be set.")
        lines.append("allow_plaintext_token: yes")
    lines.append("sources:")
    for draft in drafts:
        first = True
        for line in draft.lines:
            lines.append(f"  - {line}" if first else f"    {line}")
            first = False
    return "\n".join(lines) + "\n", sorted(mistakes)


def _source(driver: Driver, name: str) -> _ImportedSource:
    draft = _ImportedSource(driver)
    draft.put("name", _text(name))
    if name != driver.source and driver.source:
        draft.note(f"It was {json.dumps(driver.source)} there; SOURCE in its messages has this name.")
    draft.put("source", driver.kind)
    if driver.kind == "webhook-json":
        draft.note("The collector drops what is not JSON, and answers 200. Here it is kept: see on_parse_error.")
    seen: set[str] = set()
    for option in driver.options:
        try:
            if option.name in seen:
                raise _Lost("is given twice")
            seen.add(option.name)
            _carry(option, draft)
        except _Lost as lost:
            draft.mistakes.append(CollectorProblem(option.line, f"{option.name}() {lost}."))
    if draft.interface:
        _listen_on(draft)
    draft.mistakes += _together(driver)
    return draft


def _listen_on(draft: _ImportedSource) -> None:
    """Put the address to listen on into the endpoint."""
    has_key = _has_key(draft.driver)
    ports = [line for line in draft.lines if line.startswith("port: ")]
    number = ports[0].removeprefix("port: ") if ports else "443" if has_key else "80"
    interface = draft.interface.replace(":", "\\:")
    endpoint = f"port: '{'ssl' if has_key else 'tcp'}:{number}:interface={interface}'"
    if ports:
        draft.lines[draft.lines.index(ports[0])] = endpoint
    else:
        draft.lines.append(endpoint)


def _carry(option: CollectorOption, draft: _ImportedSource) -> None:
    name = option.name
    if name in _NOT_NEEDED:
        draft.note(f"{name}() {_NOT_NEEDED[name]}.")
    elif name in _LOST:
        raise _Lost(f"can't be carried over: {_LOST[name]}")
    elif name not in _CARRIED:
        raise _Lost("is no option of a webhook, or not known here")
    elif option.nested:
        raise _Lost("holds something with brackets of its own")
    else:
        _CARRIED[name](option, draft)


def _port(option: CollectorOption, draft: _ImportedSource) -> None:
    text = _one(option)
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 65536:
        raise _Lost(f"has {json.dumps(text)}, which is no port from 1 to 65535")
    draft.put("port", text)


def _ip(option: CollectorOption, draft: _ImportedSource) -> None:
    text = _one(option)
    try:
        draft.interface = str(ip_address(text))
    except ValueError:
        raise _Lost(f"has {json.dumps(text)}, which is no address") from None


def _paths(option: CollectorOption, draft: _ImportedSource) -> None:
    patterns = [value.text for value in option.values]
    if not patterns:
        draft.note("paths() is empty: every path is taken.")
        return
    lost = any("(?P<HOST>" in each for each in patterns) and not _says(draft.driver, "keep_hostname")
    if lost:
        draft.note("The group HOST sets the host here. The collector drops it without keep-hostname(yes).")
    draft.put("paths", f"[{', '.join(_quoted(each) for each in patterns)}]")


def _prefix(option: CollectorOption, draft: _ImportedSource) -> None:
    if draft.driver.kind != "webhook-json":
        raise _Lost("belongs to webhook-json()")
    draft.put("prefix", _text(_one(option)), "It also stands before the numbers of an array that is the whole body.")


def _auth_token(option: CollectorOption, draft: _ImportedSource) -> None:
    token = _one(option)
    if not token:
        draft.note("auth_token() is empty: no token is asked for.")
        return
    if not re.fullmatch(r"[!-~]+", token):
        raise _Lost("holds a blank or a character that no header can have; the collector refuses every request with it")
    draft.put("auth_token", _quoted(token), "Better in a file that others can't read: auth_token_file.")


def _headers(option: CollectorOption, draft: _ImportedSource) -> None:
    comment = "webhook.headers is an object here, not a text of JSON, and credentials in it are masked."
    _flag(option, draft, comment)


def _proxy_header(option: CollectorOption, draft: _ImportedSource) -> None:
    name = _one(option).lower()
    if name in ("", "no"):
        draft.note("proxy_header() names none.")
        return
    draft.put("proxy_header", _text(name), "Of a list in it the last address counts; the collector reads no lists.")


def _file(option: CollectorOption, draft: _ImportedSource) -> None:
    path = _one(option)
    if not path:
        draft.note(f"{option.name}() is empty.")
        return
    comment = "" if path.startswith("/") else "Relative names start at the directory in which the receiver is started."
    draft.put(option.name, _text(path), comment)


def _peer_verify(option: CollectorOption, draft: _ImportedSource) -> None:
    text = _one(option)
    if option.values and option.values[0].quoted and not _WORDS.get(text.lower(), True):
        draft.put(option.name, "yes", f'The collector takes the text "{text}" in quotes for yes.')
    elif text == "required-trusted":
        draft.put(option.name, "yes")
    else:
        _flag(option, draft)


def _flag(option: CollectorOption, draft: _ImportedSource, comment: str = "") -> None:
    text = _one(option).lower()
    if text not in _WORDS:
        raise _Lost(f"has {json.dumps(text)}, which is neither yes nor no")
    draft.put(option.name, "yes" if _WORDS[text] else "no", comment if _WORDS[text] else "")


_CARRIED: Final[dict[str, Callable[[CollectorOption, _ImportedSource], None]]] = {
    "port": _port,
    "ip": _ip,
    "paths": _paths,
    "prefix": _prefix,
    "auth_token": _auth_token,
    "include_request_headers": _headers,
    "proxy_header": _proxy_header,
    "tls_cert_file": _file,
    "tls_key_file": _file,
    "tls_ca_file": _file,
    "tls_ca_dir": _file,
    "tls_peer_verify": _peer_verify,
    "tls_use_system_cert_store": _flag,
}


def _together(driver: Driver) -> Iterator[CollectorProblem]:
    """Yield what is wrong with options beside each other."""
    if bool(_value(driver, "tls_cert_file")) and not _has_key(driver):
        text = "tls_cert_file() without tls_key_file() is plain HTTP to the collector; here it is an error."
        yield CollectorProblem(driver.line, text)
    if _has_key(driver) and not _value(driver, "tls_cert_file"):
        yield CollectorProblem(driver.line, "tls_key_file() needs tls_cert_file().")
    verify = _option(driver, "tls_peer_verify")
    trusted = (
        _value(driver, "tls_ca_file") or _value(driver, "tls_ca_dir") or _says(driver, "tls_use_system_cert_store")
    )
    if verify and ((verify.values and verify.values[0].quoted) or _says(driver, "tls_peer_verify")) and not trusted:
        text = "tls_peer_verify() has no CA to verify clients by: the collector refuses them all."
        yield CollectorProblem(verify.line, text)


def _option(driver: Driver, name: str) -> CollectorOption | None:
    return next((option for option in driver.options if option.name == name), None)


def _value(driver: Driver, name: str) -> str:
    option = _option(driver, name)
    return option.values[0].text if option and option.values else ""


def _says(driver: Driver, name: str) -> bool:
    return _WORDS.get(_value(driver, name).lower(), False)


def _has_token(driver: Driver) -> bool:
    return bool(_value(driver, "auth_token"))


def _has_key(driver: Driver) -> bool:
    return bool(_value(driver, "tls_key_file"))


def _one(option: CollectorOption) -> str:
    texts = [value.text for value in option.values]
    if len(texts) != 1:
        raise _Lost(f"takes one value and has {len(texts)}")
    return texts[0]


def _source_name(driver: Driver, number: int) -> str:
    name = _NAME.sub("-", driver.source).strip("-._")[:_LONGEST_NAME]
    return name or f"{driver.kind}-{number}"


def _unique(name: str, names: set[str]) -> str:
    wanted, number = name, 1
    while wanted in names:
        number += 1
        wanted = f"{name}-{number}"
    names.add(wanted)
    return wanted


def _text(text: str) -> str:
    """Return a text as a YAML value, in quotes where it needs them."""
    return text if _PLAIN.fullmatch(text) and text.lower() not in _WORDS and text.lower() != "null" else _quoted(text)


def _quoted(text: str) -> str:
    """Return a text in quotes; what would be a reference to somewhere else stands for itself."""
    if re.search(r"(?<!\$)\$\{[A-Za-z_]\w*\}", text):
        raise _Lost("holds ${…}, which no value of the configuration can")
    return json.dumps(re.sub(r"\$\{(?=env:|file:)", "$${", text), ensure_ascii=False)


def sentences(file: str, mistakes: Sequence[CollectorProblem]) -> list[str]:
    """Return a line for each thing that can't be carried over."""
    return [f"{file}:{line}: error: {text}" for line, text in mistakes]


def add_to(subject: argparse.ArgumentParser) -> None:
    """Put the verb on the command line."""
    collector = Verbs(subject).add(
        "collector",
        _import_collector,
        "print the webhook() and webhook-json() sources of a collector's configuration as YAML of ours",
        "webhookrx import collector /etc/syslog-ng/syslog-ng.conf > webhookrx.yaml",
    )
    collector.add_argument("file", metavar="FILE", help="the configuration; - reads standard input")


def _import_collector(asked: argparse.Namespace, out: TextIO, errors: TextIO) -> int:
    yaml, mistakes = as_yaml(read_collector(read_text(asked.file), os.environ))
    for line in sentences(asked.file, mistakes):
        print(safe(line), file=errors)
    if not yaml:
        print(safe(f"{asked.file}: error: There is no source with webhook() or webhook-json() in it."), file=errors)
        return FAILED
    out.write(yaml)
    return FAILED if mistakes else DONE
