"""
Rules files that are wrong, each in one way.
"""

from __future__ import annotations

from typing import NamedTuple


class Bad(NamedTuple):
    """
    What is wrong with a file.

    @ivar at: line, column and field of the finding.
    """

    code: str
    text: str
    at: tuple[int, int, str]


RULE = "connector_rules:\n- name: a\n  protocol: HTTP\n  port: 8181\n"
"""A rule to go on with in line 5."""

TLS = "connector_rules:\n- name: a\n  protocol: HTTPS\n  port: 8443\n  key_file: /k\n"
STEPS = RULE + "  preprocessing:\n    steps:\n    - "

_FIRST = "connector_rules[0]"
_STEP = f"{_FIRST}.preprocessing.steps[0]"


def rules(*items: str, hosts: str = "") -> str:
    """Return a file with some rules, each in a line from the second on; C{P} is a protocol."""
    lines = [f"- {{{item.replace('P,', 'protocol: HTTP,')}}}\n" for item in items]
    return "connector_rules:\n" + "".join(lines) + hosts


_ONE_PORT = ("name: a, P, port: 8181", "name: b, P, port: 8181")
_HOSTS = "hosts:\n- {name: r1, labels: {site: fra}}\n- {name: r2}\n"
_LONG = "connector_rules:\n- {name: " + "a" * 63 + ", protocol: HTTP, port: 8181}\nhosts:\n- name: " + "r" * 200

BAD = [
    Bad("bad-name", rules('name: "a\\tb", P, port: 8181'), (2, 10, f"{_FIRST}.name")),
    Bad("bad-name", rules(f"name: {'a' * 64}, P, port: 8181"), (2, 10, f"{_FIRST}.name")),
    Bad("bad-name", rules("name: '', P, port: 8181"), (2, 10, f"{_FIRST}.name")),
    Bad("bad-name", RULE + '  suffix: "in\\u202e"', (5, 11, f"{_FIRST}.suffix")),
    Bad("bad-name", "hosts:\n- name: a b", (2, 9, "hosts[0].name")),
    Bad("bad-name", STEPS + "probe: a b", (7, 14, f"{_STEP}.probe")),
    Bad(
        "duplicate-name", rules("name: a, P, port: 1024", "name: a, P, port: 1025"), (3, 10, "connector_rules[1].name")
    ),
    Bad("duplicate-name", "hosts:\n- name: a\n- name: b\n- name: a", (4, 9, "hosts[2].name")),
    Bad("label-key", RULE + "  labels: {b: c, 'a b': c}", (5, 18, f'{_FIRST}.labels["a b"]')),
    Bad("label-key", "hosts:\n- name: a\n  labels: {'': c}", (3, 12, 'hosts[0].labels[""]')),
    Bad("label-value", RULE + "  labels: {a: b c}", (5, 15, f"{_FIRST}.labels.a")),
    Bad("selector-syntax", RULE + "  selector: name = a AND", (5, 25, f"{_FIRST}.selector")),
    Bad("selector-syntax", RULE + "  selector: \"name = 'a' b\"", (5, 25, f"{_FIRST}.selector")),
    Bad("selector-syntax", RULE + "  selector: |\n    name = a\n    AND label.x ! b", (7, 17, f"{_FIRST}.selector")),
    Bad("selector-unknown-field", RULE + "  selector: name = a OR site = b", (5, 25, f"{_FIRST}.selector")),
    Bad(
        "selector-unknown-field",
        RULE + "  selector: NOT label.stie = b\nhosts: [{name: b, labels: {site: a}}]",
        (5, 17, f"{_FIRST}.selector"),
    ),
    Bad("selector-matches-none", RULE + "  selector: name = a\nhosts: [{name: b}]", (5, 13, f"{_FIRST}.selector")),
    Bad("bad-protocol", rules("name: a, protocol: https, port: 8181"), (2, 23, f"{_FIRST}.protocol")),
    Bad("port-range", rules("name: a, P, port: 0"), (2, 35, f"{_FIRST}.port")),
    Bad("port-range", rules("name: a, P, port: 65536"), (2, 35, f"{_FIRST}.port")),
    Bad("port-range", rules("name: a, P, port: -1"), (2, 35, f"{_FIRST}.port")),
    Bad("port-privileged", rules("name: a, P, port: 1023"), (2, 35, f"{_FIRST}.port")),
    Bad("port-clash", rules(*_ONE_PORT), (3, 35, "connector_rules[1].port")),
    Bad("port-clash", rules(*_ONE_PORT, hosts=_HOSTS), (3, 35, "connector_rules[1].port")),
    Bad("https-without-key", TLS.replace("key_file", "cert_file"), (2, 3, f"{_FIRST}.key_file")),
    Bad("https-without-certificate", TLS, (2, 3, f"{_FIRST}.cert_file")),
    Bad("http-with-key", RULE + "  key_file: /k", (5, 13, f"{_FIRST}.key_file")),
    Bad("http-with-certificate", RULE + "  cert_file: /c", (5, 14, f"{_FIRST}.cert_file")),
    Bad("relative-path", TLS + "  cert_file: c.pem", (6, 14, f"{_FIRST}.cert_file")),
    Bad("relative-path", TLS.replace("/k", "~/k") + "  cert_file: /c", (5, 13, f"{_FIRST}.key_file")),
    Bad("no-paths", RULE + "  paths: []", (5, 10, f"{_FIRST}.paths")),
    Bad("bad-health", RULE + "  health: /.*", (5, 11, f"{_FIRST}.health")),
    Bad("path-without-slash", RULE + "  paths: [/a, b]", (5, 15, f"{_FIRST}.paths[1]")),
    Bad("path-too-long", RULE + f"  paths: [/a, /{'b' * 10_000}]", (5, 15, f"{_FIRST}.paths[1]")),
    Bad(
        "paths-too-large",
        RULE + r"  paths: ['/\p{L}{1,145}', '/a\p{L}{1,145}', '/b\p{L}{1,145}', '/(b']",
        (5, 46, f"{_FIRST}.paths[2]"),
    ),
    Bad("path-syntax", RULE + "  paths: [/a, '/(b']", (5, 15, f"{_FIRST}.paths[1]")),
    Bad("path-repeated-group", RULE + "  paths: ['/(?P<a>b)(?P<a>c)']", (5, 11, f"{_FIRST}.paths[0]")),
    Bad("path-hard-macro", RULE + "  paths:\n  - /(?P<SOURCEIP>.*)", (6, 5, f"{_FIRST}.paths[0]")),
    Bad("path-not-linear", RULE + "  paths: [/a, '/(?P<b>.)(?P=b)']", (5, 15, f"{_FIRST}.paths[1]")),
    Bad("path-not-linear", RULE + "  paths: ['/a(?=b)b']", (5, 11, f"{_FIRST}.paths[0]")),
    Bad("path-glob", RULE + "  paths: [/a, /b/*]", (5, 15, f"{_FIRST}.paths[1]")),
    Bad("path-invisible", RULE + "  paths: [/a b]", (5, 11, f"{_FIRST}.paths[0]")),
    Bad("path-hidden", RULE + "  paths: [/.*, /b]", (5, 16, f"{_FIRST}.paths[1]")),
    Bad("connector-name-too-long", _LONG, (2, 10, f"{_FIRST}.name")),
    Bad(
        "duplicate-connector",
        rules("name: a, P, port: 1024, suffix: b-c", "name: a-b, P, port: 1025, suffix: c"),
        (3, 10, "connector_rules[1].name"),
    ),
    Bad("parse-without-classify", RULE + "  preprocessing: {parse: yes}", (5, 26, f"{_FIRST}.preprocessing.parse")),
    Bad("parse-without-classify", STEPS + "parse: yes\n    - classify: yes", (7, 14, f"{_STEP}.parse")),
    Bad("unknown-step", STEPS + "rename: {a: b}", (7, 7, f"{_STEP}.rename")),
    Bad("unknown-step", STEPS + "set-field: {field: meta.a, value: b}", (7, 7, f"{_STEP}.set_field")),
    Bad("unknown-step", STEPS + "'my step': yes", (7, 7, f'{_STEP}["my step"]')),
    Bad("unknown-key", STEPS + "probe: {name: a, size: 1}", (7, 24, f"{_STEP}.probe.size")),
    Bad("step-kind", STEPS + "label: nothing", (7, 7, _STEP)),
    Bad("step-kind", STEPS + "probe: a\n      unset: log.body", (7, 7, _STEP)),
    Bad("step-kind", STEPS + "classify: no", (7, 17, f"{_STEP}.classify")),
    Bad("bad-label", STEPS + "probe: a\n      label: a|b", (8, 14, f"{_STEP}.label")),
    Bad("bad-on-error", STEPS + "probe: a\n      on_error: dorp", (8, 17, f"{_STEP}.on_error")),
    Bad("step-keeps-unhidden", STEPS + "unset: log.body", (7, 7, _STEP)),
    Bad(
        "step-keeps-unhidden",
        STEPS + "set: {field: log.a, value: '***'}\n      on_error: keep",
        (8, 17, f"{_STEP}.on_error"),
    ),
    Bad("step-keeps-unhidden", STEPS + "expression: unset(log.a);", (7, 7, _STEP)),
    Bad("bad-query", STEPS + "select: meta.a = b OR", (7, 28, f"{_STEP}.select")),
    Bad(
        "bad-query",
        STEPS + "probe: a\n      condition: >-\n        log.x = 1\n\n        OR",
        (11, 11, f"{_STEP}.condition"),
    ),
    Bad("step-unknown-field", STEPS + "select: log.body.a = b OR body.a = b", (7, 33, f"{_STEP}.select")),
    Bad(
        "step-unknown-field",
        STEPS + "probe: a\n      condition: |\n        log.x = 1\n        OR NOT host_name = a",
        (10, 16, f"{_STEP}.condition"),
    ),
    Bad("bad-regex", STEPS + "regex: {pattern: '(?P<a>[)'}", (7, 31, f"{_STEP}.regex.pattern")),
    Bad("no-groups", STEPS + "regex: {pattern: a}", (7, 24, f"{_STEP}.regex.pattern")),
    Bad(
        "bad-expression",
        STEPS + "expression: |\n        log.body.x = 1;\n        log.body.y = 2\n\n    - probe: a",
        (9, 23, f"{_STEP}.expression"),
    ),
    Bad("bad-expression", STEPS + 'expression: |\n        x = "1";\n        y = ;', (9, 13, f"{_STEP}.expression")),
    Bad("bad-field", STEPS + "unset: [log.body, body]", (7, 25, f"{_STEP}.unset[1]")),
    Bad("bad-field", STEPS + "set: {field: a..b, value: 1}", (7, 20, f"{_STEP}.set.field")),
    Bad("bad-value", STEPS + "set: {field: log.severity_number, value: 99}", (7, 48, f"{_STEP}.set.value")),
    Bad("bad-value", "version: 2", (1, 10, "version")),
    Bad("unknown-key", RULE + "  slector: a", (5, 3, f"{_FIRST}.slector")),
    Bad("sender-not-built-in", RULE + "  sender: gihtub", (5, 11, f"{_FIRST}.sender")),
    Bad("sender-misfit", RULE + "  sender: github", (5, 11, f"{_FIRST}.sender")),
    Bad("sender-misfit", RULE + "  sender: square\n  secrets_file: /s", (5, 11, f"{_FIRST}.sender")),
    Bad("sender-misfit", RULE + "  sender: github\n  secrets_file: /s\n  split: yes", (7, 10, f"{_FIRST}.split")),
    Bad(
        "sender-misfit",
        RULE + "  sender: zoom\n  secrets_file: /s\n  idempotency: 1h",
        (7, 16, f"{_FIRST}.idempotency"),
    ),
    Bad("sender-misfit", RULE + "  sender: fastly\n  sender_settings: {x: 1}", (6, 24, f"{_FIRST}.sender_settings.x")),
    Bad("needs-sender", RULE + "  verify: required", (5, 11, f"{_FIRST}.verify")),
    Bad("needs-sender", RULE + "  handshake: yes", (5, 14, f"{_FIRST}.handshake")),
    Bad("needs-sender", RULE + "  secrets_file: [/a]", (5, 17, f"{_FIRST}.secrets_file")),
    Bad("needs-sender", RULE + "  split: yes", (5, 10, f"{_FIRST}.split")),
    Bad("needs-token", RULE + "  auth_token_in: query:token", (5, 18, f"{_FIRST}.auth_token_in")),
    Bad("needs-token", RULE + "  quota: {messages: 1/s, per: token}", (5, 10, f"{_FIRST}.quota")),
    Bad("needs-ca-file", RULE + "  allow_clients: ['*.example.net']", (5, 18, f"{_FIRST}.allow_clients")),
    Bad("needs-ca-file", TLS + "  cert_file: /c\n  allow_clients: [a]", (7, 18, f"{_FIRST}.allow_clients")),
    Bad("http-with-ca-file", RULE + "  ca_file: /c", (5, 12, f"{_FIRST}.ca_file")),
    Bad("bad-verify", RULE + "  sender: github\n  verify: maybe", (6, 11, f"{_FIRST}.verify")),
    Bad("bad-split", RULE + "  split: line", (5, 10, f"{_FIRST}.split")),
    Bad("bad-window", RULE + "  sender: github\n  idempotency: 0", (6, 16, f"{_FIRST}.idempotency")),
    Bad("bad-quota", RULE + "  quota: {messages: 1}", (5, 10, f"{_FIRST}.quota")),
    Bad("bad-network", RULE + "  allow: [office, 192.0.2.1/24]", (5, 19, f"{_FIRST}.allow[1]")),
    Bad(
        "bad-client",
        TLS + "  cert_file: /c\n  ca_file: /a\n  allow_clients: [a, '*']",
        (8, 22, f"{_FIRST}.allow_clients[1]"),
    ),
    Bad(
        "bad-token-place", RULE + "  auth_token_file: /t\n  auth_token_in: cookie:a", (6, 18, f"{_FIRST}.auth_token_in")
    ),
    Bad(
        "no-token-group",
        RULE + "  auth_token_file: /t\n  auth_token_in: path:key\n  paths: [/b, '/(?P<key>.*)']",
        (6, 18, f"{_FIRST}.auth_token_in"),
    ),
    Bad("bad-public-url", RULE + "  sender: github\n  public_url: example.net", (6, 15, f"{_FIRST}.public_url")),
    Bad("relative-path", RULE + "  sender: github\n  secrets_file: secrets", (6, 17, f"{_FIRST}.secrets_file")),
    Bad("relative-path", RULE + "  auth_token_file: [/t, tokens]", (5, 20, f"{_FIRST}.auth_token_file")),
    Bad("missing-key", "connector_rules:\n- name: a\n  protocol: HTTP", (2, 3, f"{_FIRST}.port")),
    Bad("wrong-type", rules("name: a, P, port: https"), (2, 35, f"{_FIRST}.port")),
    Bad("wrong-type", "connector_rules: {a: b}", (1, 18, "connector_rules")),
]
