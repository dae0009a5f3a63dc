"""Rules as documents."""

from __future__ import annotations

from textwrap import dedent

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.diagnostics import ERROR
from webhookrx.management.rule_documents import (
    decode_document,
    document_of,
    document_yaml,
    encode_document,
    rules_yaml,
    texts_as_written,
)
from webhookrx.router.rules.rule import Rule
from webhookrx.router.rules.rules_file import read_rule, read_rules
from webhookrx.router.steps.step import Preprocessing, SetField, Step

WRITTEN = """\
    # of the whole file
    version: 1

    connector_rules:
      # Why there is a rule a.
      - name: a   # its name
        protocol: HTTP
        port: 8080
    #    suffix: later
        preprocessing:
          steps:
            - set: {field: log.body, value: {a: 1.10, b: "1e3"}}
            - expression: |
                x = 1;

                y = 2;
      # Of b,
      # in two lines.
      - {name: b, protocol: HTTP, port: 8081}

      - name: c
        protocol: HTTP
        port: 8082
        # inside of c
      # behind c
    # behind the list
    hosts: []
"""

texts = st.one_of(
    st.sampled_from(["", "yes", "0123", "1e3", "0o17", "~", "null", "<<", "=", "- a", "a: b", "a #b", " a ", "1.10"]),
    st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=12),
    st.text("ab \n\t'\"#:", max_size=12),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.just(msgspec.Raw(b"1.10")), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=8,
)


def written_texts(text: str) -> list[str]:
    """Return the texts of the rules of a file."""
    data = dedent(text).encode()
    reading = read_rules(data, "rules.yaml")
    assert reading.valid, reading.diagnostics
    return texts_as_written(data, reading)


class DocumentTests(SynchronousTestCase):
    """L{document_of} and L{document_yaml}."""

    def test_defaults(self) -> None:
        """A document lacks what has its default, and its keys are in the order of the fields."""
        rule = Rule("a", "HTTP", 8080, selector="name = x", suffix="in")
        expected = {"name": "a", "protocol": "HTTP", "port": 8080, "selector": "name = x", "suffix": "in"}
        self.assertEqual(expected, document_of(rule))
        self.assertEqual(list(expected), list(document_of(rule)))

    def test_digits(self) -> None:
        """A number keeps its digits through JSON and YAML."""
        document = decode_document(b'{"value": 1.10, "large": 1e400}')
        self.assertEqual(b'{"value":1.10,"large":1e400}', encode_document(document))
        self.assertEqual("value: 1.10\nlarge: 1e400\n", document_yaml(document))

    def test_no_document(self) -> None:
        """What is no object is refused."""
        for data in (b"[]", b"1", b"{", b""):
            self.assertRaises(msgspec.DecodeError, decode_document, data)

    @given(values, texts)
    def test_again(self, value: object, description: str) -> None:
        """The YAML that is written for a rule is read as the same rule."""
        steps = (Step(set=SetField("log.body.x", value)), Step(select="a = 'b'", on_error="drop"))
        rule = Rule(
            "a",
            "HTTP",
            8080,
            description=description,
            labels={"team": "0123"},
            preprocessing=Preprocessing(steps=steps),
        )
        reading = read_rule(document_yaml(document_of(rule)).encode(), "rule")
        self.assertEqual([], [each for each in reading.diagnostics if each.severity == ERROR])
        assert reading.value is not None
        self.assertEqual(encode_document(document_of(rule)), encode_document(document_of(reading.value)))


class TextsAsWrittenTests(SynchronousTestCase):
    """L{texts_as_written} and L{rules_yaml}."""

    def test_comments(self) -> None:
        """Each rule has the comments in it and right above it, and stands by itself."""
        a, b, c = written_texts(WRITTEN)
        self.assertEqual(
            dedent("""\
                # Why there is a rule a.
                name: a   # its name
                protocol: HTTP
                port: 8080
                #    suffix: later
                preprocessing:
                  steps:
                    - set: {field: log.body, value: {a: 1.10, b: "1e3"}}
                    - expression: |
                        x = 1;

                        y = 2;
            """),
            a,
        )
        self.assertEqual("# Of b,\n# in two lines.\n{name: b, protocol: HTTP, port: 8081}\n", b)
        self.assertEqual("name: c\nprotocol: HTTP\nport: 8082\n# inside of c\n# behind c\n", c)

    def test_together(self) -> None:
        """The texts make a file again, with the same rules and the same texts."""
        texts = written_texts(WRITTEN)
        whole = rules_yaml(texts)
        read = read_rules(dedent(WRITTEN).encode(), "one").rules
        self.assertEqual(read, read_rules(whole.encode(), "two").rules)
        self.assertEqual(texts, written_texts(whole))

    def test_none(self) -> None:
        """Without rules there is a file with an empty list."""
        reading = read_rules(rules_yaml([]).encode(), "file")
        self.assertEqual(((), []), (reading.rules, reading.diagnostics))

    def test_dependent(self) -> None:
        """A rule that has an alias for a part of another, or is written in braces in a list, is written anew."""
        texts = written_texts("""\
            connector_rules:
              - name: a
                protocol: HTTP
                port: 8080
                labels: &team {team: x}   # of both
              - name: b
                protocol: HTTP
                port: 8081
                labels: *team   # the same
        """)
        self.assertIn("# of both", texts[0])
        self.assertEqual("name: b\nprotocol: HTTP\nport: 8081\nlabels:\n  team: x\n", texts[1])
        texts = written_texts("connector_rules: [{name: a, protocol: HTTP, port: 8080}]  # in a row\n")
        self.assertEqual(["name: a\nprotocol: HTTP\nport: 8080\n"], texts)

    def test_line_ends(self) -> None:
        """Line ends of Windows become ours; other rare ones have rules written anew."""
        data = b"connector_rules:\r\n- name: a # x\r\n  protocol: HTTP\r\n  port: 8080\r\n"
        self.assertEqual(
            ["name: a # x\nprotocol: HTTP\nport: 8080\n"], texts_as_written(data, read_rules(data, "file"))
        )
        data = "connector_rules:\n- name: a # \u2028x\n  protocol: HTTP\n  port: 8080\n".encode()
        reading = read_rules(data, "file")
        if reading.valid:
            self.assertEqual(["name: a\nprotocol: HTTP\nport: 8080\n"], texts_as_written(data, reading))
