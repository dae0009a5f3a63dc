"""
Diagnostics: what is wrong with a file or an option, with code, severity, path, place and sentence, and all codes.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

import msgspec

ERROR: Final = "error"
WARNING: Final = "warning"

_SHOWN: Final = 80
"""Characters of a text that a sentence quotes at most."""

_PLAIN_KEY: Final = re.compile(r"[\w./-]+")

#: Keys and indices, from the whole file down: C{("connector_rules", 0, "port")}.
Path: TypeAlias = tuple[str | int, ...]


class Code(NamedTuple):
    """
    A kind of mistake.

    @ivar word: stable, such as C{port-clash}.
    @ivar severity: L{ERROR} or L{WARNING}.
    @ivar meaning: one sentence for the docs.
    """

    word: str
    severity: str
    meaning: str


FILE_CODES: Final = (
    Code("not-utf8", ERROR, "The file is not UTF-8 text."),
    Code("file-too-large", ERROR, "The file is larger than 4 MiB."),
    Code("yaml-syntax", ERROR, "The file is not YAML; nothing after this place was checked."),
    Code("control-character", ERROR, "A text contains a control character other than tab and line break."),
    Code("too-deep", ERROR, "Lists and mappings are nested deeper than 64."),
    Code("too-many-values", ERROR, "The file has too many values, with its aliases expanded."),
    Code("too-many-mistakes", ERROR, "The file has more than 1,000 errors; no others were searched."),
    Code("bad-alias", ERROR, "An alias has no anchor before it, or is part of its own anchor."),
    Code("yaml-tag", ERROR, "YAML tags such as `!name` are not supported; quote such a text."),
    Code("several-documents", ERROR, "The file has more than one YAML document."),
    Code("empty-file", ERROR, "The file is empty; it may still be being written."),
    Code("unknown-key", ERROR, "There is no such key."),
    Code("duplicate-key", ERROR, "A key is repeated; `-` and `_` are the same."),
    Code("bad-key", ERROR, "A key is not plain text."),
    Code("bad-merge", ERROR, "The value of `<<` is not a mapping, or has a `<<` of its own."),
    Code("missing-key", ERROR, "A required key is missing."),
    Code("no-value", WARNING, "A key has no value, so its default applies."),
    Code("missing-value", ERROR, "A key that needs a value, or an item of a list, has none."),
    Code("wrong-type", ERROR, "A value has the wrong type."),
    Code("bad-value", ERROR, "A value is out of range."),
)
"""Of any file that is read by type, see L{webhookrx.typed_yaml}."""

RULE_CODES: Final = (
    Code("bad-name", ERROR, "A name or a suffix has invalid characters, or is too long."),
    Code("duplicate-name", ERROR, "Two rules, or two hosts, have the same name."),
    Code(
        "label-key",
        ERROR,
        "The key of a label is invalid: up to 63 characters, with an optional `DNS-NAME/` before it.",
    ),
    Code("label-value", ERROR, "The value of a label is invalid: up to 63 characters."),
    Code("selector-syntax", ERROR, "The selector is not a valid query."),
    Code("selector-unknown-field", WARNING, "The selector uses a field that no router has."),
    Code("selector-matches-none", WARNING, "The selector matches none of the `hosts`."),
    Code("inventory-too-large", WARNING, "There are too many rules and `hosts` to test what each rule matches."),
    Code("bad-protocol", ERROR, "The protocol is neither `HTTPS` nor `HTTP`."),
    Code("port-range", ERROR, "The port is not a number from 1 to 65535."),
    Code("port-privileged", WARNING, "A port below 1024 needs a privilege (`CAP_NET_BIND_SERVICE`)."),
    Code("port-clash", ERROR, "Two rules use the same port on one router."),
    Code("https-without-key", ERROR, "HTTPS needs a private key."),
    Code("https-without-certificate", ERROR, "HTTPS needs a certificate."),
    Code("http-with-key", ERROR, "HTTP does not use a private key."),
    Code("http-with-certificate", ERROR, "HTTP does not use a certificate."),
    Code("relative-path", ERROR, "The path of a key or certificate file is not absolute."),
    Code("no-paths", ERROR, "The list of paths is empty, so no request would be accepted."),
    Code("path-without-slash", ERROR, "A path can't match a request, which begins with `/`."),
    Code("path-too-long", ERROR, "A path is too long, or there are too many of them."),
    Code("paths-too-large", ERROR, "The paths of a rule have too many alternatives and repetitions together."),
    Code("path-syntax", ERROR, "A path is not a valid regular expression."),
    Code("path-repeated-group", ERROR, "Two groups of a path have the same name, or set the same value."),
    Code("path-hard-macro", ERROR, "A group of a path has the name of a value that only the receiver sets."),
    Code("path-not-linear", ERROR, "RE2 can't run a path: a hostile request could block the receiver."),
    Code("path-slow", WARNING, "The same, when `--allow-slow-patterns` accepts the risk."),
    Code("path-invisible", WARNING, "A path needs characters that arrive percent-encoded, so it can't match."),
    Code("path-glob", WARNING, "A star in a path repeats the slash before it; `.*` is meant."),
    Code("path-hidden", WARNING, "An earlier path hides this one."),
    Code("bad-health", ERROR, "The path for health checks is not a single path."),
    Code("connector-name-too-long", ERROR, "The name of a connector would have more than 253 characters."),
    Code("duplicate-connector", ERROR, "Two connectors of a router would have the same name."),
    Code("parse-without-classify", ERROR, "Parse needs a Classify before it."),
    Code("unknown-step", ERROR, "There is no such kind of step."),
    Code("step-kind", ERROR, "A step has no kind, several kinds, or one that is switched off."),
    Code("bad-on-error", ERROR, "The value of `on_error` is not one of `keep`, `drop` and `tag`."),
    Code("step-keeps-unhidden", WARNING, "A step removes or masks something, and keeps messages on which it fails."),
    Code("bad-label", ERROR, "The label of a step is invalid."),
    Code("bad-query", ERROR, "The condition or query of a step is not a valid query."),
    Code("step-unknown-field", WARNING, "The condition or query of a step uses a field that no message has."),
    Code("bad-regex", ERROR, "The regular expression of a step does not compile, or RE2 can't run it."),
    Code("no-groups", ERROR, "The regular expression of a step has no named group."),
    Code("bad-expression", ERROR, "The statements of an expression step do not compile."),
    Code("bad-field", ERROR, "A step names a field that messages can't have, or that can't be changed."),
    Code("sender-not-built-in", WARNING, "A sender is not among the built-in ones; the routers need its definition."),
    Code(
        "sender-misfit",
        WARNING,
        "A field asks for what the built-in definition of the sender lacks, or one is missing that it needs: routers "
        "without a definition of their own are blocked.",
    ),
    Code("needs-sender", ERROR, "A field is about the sender, and the rule has no `sender`."),
    Code("needs-token", ERROR, "A field is about tokens, and the rule has no `auth_token_file`."),
    Code(
        "needs-ca-file", ERROR, "Only some clients may send, and without HTTPS and a `ca_file` none is asked who it is."
    ),
    Code("http-with-ca-file", ERROR, "HTTP does not use a `ca_file`."),
    Code("bad-verify", ERROR, "The value of `verify` is not one of `required`, `note` and `off`."),
    Code("bad-split", ERROR, "The value of `split` is neither one of its words nor a JSON pointer."),
    Code("bad-window", ERROR, "The value of `idempotency` is not a sensible length of time."),
    Code("bad-quota", ERROR, "A quota has an unknown member or a wrong value, or limits nothing."),
    Code("bad-network", ERROR, "An item of `allow` is neither a network nor the name of a list of networks."),
    Code("bad-client", ERROR, "An item of `allow_clients` is neither a name of a client nor a fingerprint."),
    Code("bad-token-place", ERROR, "The value of `auth_token_in` is not a place where a token can be."),
    Code("no-token-group", ERROR, "A path of the rule lacks the group in which tokens are to be."),
    Code(
        "bad-public-url",
        ERROR,
        "The value of `public_url` is not a URL that begins with scheme and host.",
    ),
)
"""Of connector rules, as far as the rules file shows."""

ROUTER_CODES: Final = (
    Code("file-unreadable", ERROR, "The rules file is missing, or can't be read."),
    Code("selector-may-match", WARNING, "Whether the selector matches a router depends on unknown metadata."),
    Code("selector-too-costly", ERROR, "Matching the selector with the metadata of the router takes too much work."),
    Code("tls-file-missing", ERROR, "A key or certificate file is missing."),
    Code("tls-file-unreadable", ERROR, "A key or certificate file can't be read by the service."),
    Code("tls-file-not-pem", ERROR, "A key or certificate file does not contain the expected PEM."),
    Code("key-encrypted", ERROR, "The private key is encrypted."),
    Code("key-unusable", ERROR, "TLS can't use a private key of that kind or length."),
    Code("key-file-open", WARNING, "Every user of the machine can read or write the private key."),
    Code("key-mismatch", ERROR, "The private key does not match the certificate."),
    Code("chain-order", ERROR, "The certificates of a chain are not in order."),
    Code("certificate-expired", WARNING, "The certificate has expired."),
    Code("certificate-expires-soon", WARNING, "The certificate expires soon."),
    Code("certificate-not-yet-valid", WARNING, "The certificate is not valid yet."),
    Code("json-file-missing", ERROR, "A JSON file that an expression names is missing."),
    Code("json-file-unusable", ERROR, "A JSON file that an expression names can't be read, or is too large."),
    Code("port-in-use", ERROR, "Another program on the router listens on the port."),
    Code("sender-unknown", ERROR, "There is no definition of the sender, neither built in nor in `--senders`."),
    Code("sender-lacks", ERROR, "The definition of the sender says nothing of what a field asks for."),
    Code(
        "sender-setting",
        ERROR,
        "A setting of a sender is unknown, has a wrong value, or is missing.",
    ),
    Code("quota-loses", WARNING, "The sender does not send again what a quota refuses."),
    Code("needs-public-url", ERROR, "The sender signs the URL that it sends to, and the rule has no `public_url`."),
    Code(
        "public-url-not-used",
        ERROR,
        "The sender does not sign the URL that it sends to, so that `public_url` has no effect.",
    ),
    Code("secrets-file-missing", ERROR, "A file of secrets is missing."),
    Code("secrets-file-unusable", ERROR, "A file of secrets can't be read by the service, or a line of it is wrong."),
    Code("secrets-file-open", WARNING, "Every user of the machine can read or write a file of secrets."),
    Code("secret-unusable", ERROR, "No scheme of the sender can make a key of a secret."),
    Code(
        "secret-doubtful", WARNING, "A secret looks as if its name, or quotes around it, were taken for a part of it."
    ),
    Code("no-secret", ERROR, "Requests must be verified, and there is no secret to verify them with."),
    Code("secrets-not-used", WARNING, "Requests are not verified, so that secrets are not used."),
    Code("no-verify-token", WARNING, "The sender asks with a verify token, and no secret is called `verify-token`."),
    Code("token-file-missing", ERROR, "A file of tokens is missing."),
    Code("token-file-unusable", ERROR, "A file of tokens can't be read by the service, or a line of it is wrong."),
    Code("token-file-open", WARNING, "Every user of the machine can read or write a file of tokens."),
    Code("token-doubtful", WARNING, "A token looks as if its name were taken for a part of it."),
    Code("token-in-the-open", ERROR, "Tokens, or secrets that requests show, would come over plain HTTP."),
    Code("networks-unknown", ERROR, "The value of `allow` names a list of networks that the router does not have."),
)
"""Of connector rules, as far as only a machine shows: its files, senders and ports. While there is an error of a file
or a sender, a router keeps the connectors that it has."""

ENTRY_CODES: Final = (
    Code(
        "entry-id",
        ERROR,
        "The id of a definition has characters other than letters, digits, dots, dashes and underscores.",
    ),
    Code("entry-empty", ERROR, "A definition lacks a vendor or product, or is one of last resort and has one."),
    Code("entry-evidence", ERROR, "A definition has no condition to recognise its requests by."),
    Code("entry-header", ERROR, "A header name is invalid."),
    Code("entry-regex", ERROR, "A regular expression of a definition does not compile."),
    Code("entry-query", ERROR, "A query of a definition is invalid."),
    Code("entry-place", ERROR, "A locator, a text template or a JSON pointer is invalid."),
    Code("entry-format", ERROR, "The format of a body, a time or a decoded part is unknown, or the kind of a setting."),
    Code("entry-severity", ERROR, "The name of a severity is unknown."),
    Code("entry-handshake", ERROR, "A question to a sender's address is answered in an unsafe way, or never told."),
    Code("entry-answer", ERROR, "An answer or a behaviour of a definition can't be as it is written."),
    Code("entry-signature", ERROR, "A way to prove who sent a request can't be used, or proves nothing."),
    Code("entry-split", ERROR, "A way to take bodies apart into their events can't be used."),
    Code("entry-twice", ERROR, "Two files have definitions with the same id."),
)
"""Of a data file of senders."""

SAMPLE_CODES: Final = (
    Code("sample-unreadable", ERROR, "A sample can't be read."),
    Code("sample-missed", ERROR, "A sample matches no definition, or another one."),
    Code("sample-unproved", ERROR, "The signature of a sample is not one by what the definition says."),
    Code("no-signed-sample", WARNING, "A definition has `verify`, and no sample with a signature."),
    Code("no-samples", WARNING, "A definition has no samples."),
    Code("takes-others", WARNING, "A definition matches samples of built-in senders."),
)
"""Of a data file of senders beside its samples."""

OPTION_CODES: Final = (
    Code("bad-ca-directory", ERROR, "A directory of CA certificates is empty, or has no hashed names."),
)
"""Of files that only options of the service name."""

CONSOLE_CODES: Final = (
    Code("hosts-not-kept", WARNING, "A file that is pushed to a console has `hosts`, which the console does not keep."),
    Code("alarm-kind", ERROR, "There is no such kind of alarm, or a console can't tell it."),
    Code("alarm-query", ERROR, "The query of an alarm is not one, or asks for a field that its kind does not have."),
    Code("alarm-target", ERROR, "There is no target of that name."),
)
"""Of what a console alone judges: pushed rules files, and alarms."""

CODES: Final = {
    code.word: code
    for code in (
        *FILE_CODES,
        *RULE_CODES,
        *ROUTER_CODES,
        *ENTRY_CODES,
        *SAMPLE_CODES,
        *OPTION_CODES,
        *CONSOLE_CODES,
    )
}
"""All of them by their word."""


class Position(msgspec.Struct, frozen=True, order=True):
    """
    A line and a column; both count from 1, as editors do. 0 stands for no particular one.
    """

    line: int = 0
    column: int = 0


class Diagnostic(msgspec.Struct, frozen=True):
    """
    One thing that is wrong, or probably not meant.

    A check on values knows neither the file nor the line: it says which value it means by its path, and
    L{webhookrx.typed_yaml.Reading.located} fills in the rest.

    @ivar code: the word of one of L{CODES}; empty for an option.
    @ivar severity: L{ERROR} or L{WARNING}.
    @ivar path: what it is about; empty for the file as a whole.
    @ivar sentence: what is wrong and what is allowed; it quotes no secret.
    @ivar line: in C{file}; as long as that is not known, in the text of the value at C{path}. It counts from 1; 0 is no
        particular place.
    @ivar column: the same for the column.
    @ivar of_key: it is about the key at C{path} and not about its value.
    @ivar named: the file of this machine that can't be used, or only with a warning; empty for another mistake.
    """

    code: str
    severity: str
    path: Path
    sentence: str
    line: int = 0
    column: int = 0
    file: str = ""
    of_key: bool = False
    named: str = ""

    @property
    def field(self) -> str:
        """What it is about as people write it, such as C{connector_rules[0].port}."""
        return path_text(self.path)

    @property
    def where(self) -> str:
        """The file, with line and column where they are known."""
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part)

    @property
    def text(self) -> str:
        """Place, value and sentence, as a start shows them."""
        sentence = f"{self.sentence} [{self.code}]" if self.code else self.sentence
        return ": ".join(part for part in (self.where, self.field, sentence) if part)

    def __str__(self) -> str:
        about = f"{self.field}: " if self.path else ""
        return f"{self.where}: {self.severity}: {about}{self.sentence} [{self.code}]"


def diagnose(
    code: str, path: Path, sentence: str, line: int = 0, column: int = 0, *, of_key: bool = False, named: str = ""
) -> Diagnostic:
    """
    Return what is wrong with a value, as severe as the table says; the arguments are those of L{Diagnostic}.

    @raise KeyError: there is no such code.
    """
    return Diagnostic(code, CODES[code].severity, path, sentence, line, column, of_key=of_key, named=named)


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    """Tell whether one of them is an error."""
    return any(each.severity == ERROR for each in diagnostics)


def in_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return them in the order of the file, each once."""
    return sorted(dict.fromkeys(diagnostics), key=lambda each: (each.line, each.column))


def path_text(path: Path) -> str:
    """Return a path as people write it, such as C{connector_rules[0].port} and C{labels["a b"]}."""
    text = ""
    for name in path:
        if isinstance(name, int):
            text += f"[{name}]"
        elif _PLAIN_KEY.fullmatch(name):
            text += f".{name}" if text else name
        else:
            text += f"[{quoted_short(name)}]"
    return text


def quoted_short(text: str) -> str:
    """
    Return a text in quotes, fit for one line: control characters escaped. Of a long one the end is left out.
    """
    return quoted(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")


def quoted(text: str) -> str:
    """Return a text in quotes, fit for one line: control characters escaped, backslashes as they are."""
    return '"' + "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text) + '"'


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a question that names the nearest known word; nothing when none is near."""
    folded = {name.lower(): name for name in sorted(known, reverse=True)}
    near = difflib.get_close_matches(word[:_SHOWN].lower(), folded, n=1)
    return f"Did you mean {quoted_short(folded[near[0]])}?" if near else ""


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return a sentence that names the nearest known word, or all of them when none is near."""
    names = sorted(known)
    return nearest(word, names) or f"Known are {', '.join(names)}."
