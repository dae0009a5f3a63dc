"""
Every mistake that a rules file can have, or that a machine shows of the files and ports that its rules name.
"""

from __future__ import annotations

from typing import Final

from webhookrx.diagnostics import ERROR, WARNING, Code, Finding, Position
from webhookrx.typed_yaml import CODES as FILE_CODES

RULE_CODES: Final = (
    Code("bad-name", ERROR, "A name or a suffix has characters that it can't have, or is too long."),
    Code("duplicate-name", ERROR, "Two rules, or two hosts, have one name."),
    Code("label-key", ERROR, "The key of a label is not one: up to 63 characters; `DNS-NAME/` may stand before it."),
    Code("label-value", ERROR, "The value of a label is not one: up to 63 characters."),
    Code("selector-syntax", ERROR, "The selector is not a query."),
    Code("selector-unknown-field", WARNING, "The selector asks for a field that no router has."),
    Code("selector-matches-none", WARNING, "The selector matches none of the `hosts`."),
    Code("inventory-too-large", WARNING, "There are too many rules and `hosts` to look at what each rule matches."),
    Code("bad-protocol", ERROR, "The protocol is neither `HTTPS` nor `HTTP`."),
    Code("port-range", ERROR, "The port is not one from 1 to 65535."),
    Code("port-privileged", WARNING, "A port below 1024 can be opened with a privilege only (`CAP_NET_BIND_SERVICE`)."),
    Code("port-clash", ERROR, "Two rules want one port on one router."),
    Code("https-without-key", ERROR, "HTTPS needs a private key."),
    Code("https-without-certificate", ERROR, "HTTPS needs a certificate."),
    Code("http-with-key", ERROR, "HTTP takes no private key."),
    Code("http-with-certificate", ERROR, "HTTP takes no certificate."),
    Code("relative-path", ERROR, "The path of a key or certificate file is not absolute."),
    Code("no-paths", ERROR, "The list of paths is empty, so that no request would be taken."),
    Code("path-without-slash", ERROR, "A path can't match a request: those begin with `/`."),
    Code("path-too-long", ERROR, "A path is too long, or there are too many of them."),
    Code("path-syntax", ERROR, "A path is no regular expression."),
    Code("path-repeated-group", ERROR, "Two groups of a path have one name, or set one value."),
    Code("path-hard-macro", ERROR, "A group of a path has the name of a value that only the receiver sets."),
    Code("path-not-linear", ERROR, "RE2 can't run a path: a hostile request could hold up everything."),
    Code("path-slow", WARNING, "The same, where `--allow-slow-patterns` takes the risk."),
    Code("path-invisible", WARNING, "A path wants characters that come percent-encoded, and can't match."),
    Code("path-glob", WARNING, "A star in a path repeats the slash before it; `.*` is meant."),
    Code("path-hidden", WARNING, "An earlier path matches all that this one would."),
    Code("bad-health", ERROR, "The path for load balancers is not one path."),
    Code("connector-name-too-long", ERROR, "The name of a connector would have more than 253 characters."),
    Code("duplicate-connector", ERROR, "Two connectors of a router would have one name."),
    Code("parse-without-classify", ERROR, "Parse needs a Classify before it."),
    Code("unknown-step", ERROR, "There is no such kind of step."),
    Code("step-kind", ERROR, "A step has no kind, several of them, or one that is switched off."),
    Code("bad-on-error", ERROR, "What happens when a step fails is not one of `keep`, `drop` and `tag`."),
    Code("step-keeps-unhidden", WARNING, "A step removes or masks something, and keeps messages on which it fails."),
    Code("bad-label", ERROR, "The label of a step is not one."),
    Code("bad-query", ERROR, "The condition or query of a step is not a query."),
    Code("step-unknown-field", WARNING, "The condition or query of a step asks for a field that no message has."),
    Code("bad-regex", ERROR, "The regular expression of a step does not compile, or RE2 can't run it."),
    Code("no-groups", ERROR, "The regular expression of a step has no named group to make a field of."),
    Code("bad-expression", ERROR, "The statements of an expression step do not compile."),
    Code("bad-field", ERROR, "A step names a field that messages do not have, or that can't be changed."),
)
"""What the file itself shows."""

ROUTER_CODES: Final = (
    Code("file-unreadable", ERROR, "The rules file is not there, or can't be read."),
    Code("selector-may-match", WARNING, "Whether the selector matches a router can't be known without its metadata."),
    Code("tls-file-missing", ERROR, "A key or certificate file is not there."),
    Code("tls-file-unreadable", ERROR, "A key or certificate file can't be read by the service."),
    Code("tls-file-not-pem", ERROR, "A key or certificate file does not hold what it should in PEM."),
    Code("key-encrypted", ERROR, "The private key is encrypted."),
    Code("key-unusable", ERROR, "TLS can't use a private key of that kind or length."),
    Code("key-file-open", WARNING, "Every user of the machine can read or write the private key."),
    Code("key-mismatch", ERROR, "The private key does not fit the certificate."),
    Code("chain-order", ERROR, "The certificates of a chain are not in order."),
    Code("certificate-expired", WARNING, "The certificate has expired."),
    Code("certificate-expires-soon", WARNING, "The certificate expires soon."),
    Code("certificate-not-yet-valid", WARNING, "The certificate is not valid yet."),
    Code("json-file-missing", ERROR, "A JSON file that an expression names is not there."),
    Code("json-file-unusable", ERROR, "A JSON file that an expression names can't be read, or is too large."),
    Code("port-in-use", ERROR, "Something else on the router listens on the port."),
)
"""What only a machine shows: its files and its ports. Those on keys, certificates and JSON files that are errors keep
the reload gate of a router closed."""

CATALOGUE: Final = {code.word: code for code in (*FILE_CODES, *RULE_CODES, *ROUTER_CODES)}


def finding(code: str, file: str, position: Position, field: str, sentence: str) -> Finding:
    """
    Return a finding of a kind that is in the table, which knows how severe it is.

    @raise KeyError: there is no such code.
    """
    return Finding(code, CATALOGUE[code].severity, file, position.line, position.column, field, sentence)
