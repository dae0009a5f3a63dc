"""
Tests for L{webhookrx.router.rules.schema}.
"""

from __future__ import annotations

import importlib
from typing import Any

import yaml
from msgspec import inspect
from twisted.trial.unittest import SkipTest, SynchronousTestCase

from tests.documents import read, with_table
from tests.router.bad_rules import BAD
from tests.router.rules.test_rules_file import GOOD
from webhookrx.diagnostics import FILE_CODES, ROUTER_CODES, RULE_CODES
from webhookrx.router.rules.rule import Host, Rule, RulesFile, SpecifiedRule
from webhookrx.router.rules.schema import code_table, host_table, rule_table, rules_schema, schema_text, step_table
from webhookrx.router.steps.step import KINDS, Preprocessing, Probe, Regex, SetField, Step

TYPES = (RulesFile, Rule, Preprocessing, Step, SetField, Regex, Probe, Host)

# Mistakes that JSON Schema can tell.
SEEN_BY_SCHEMA = {
    "unknown-step",
    "step-kind",
    "unknown-key",
    "missing-key",
    "wrong-type",
    "bad-protocol",
    "port-range",
    "https-without-key",
    "https-without-certificate",
    "http-with-key",
    "http-with-certificate",
    "no-paths",
}


class SchemaTests(SynchronousTestCase):
    """
    Tests for the JSON Schema.
    """

    def test_file(self) -> None:
        """The file in the docs is the one that the code makes: C{python -m webhookrx.router.rules.schema} prints it."""
        self.assertEqual(schema_text(), read("docs/reference/connector-rules.schema.json"))

    def test_closed_and_described(self) -> None:
        """Every object has the keys of its type and no others, and each of them says what it is."""
        definitions = rules_schema()["$defs"]
        self.assertEqual({cls.__name__ for cls in TYPES}, set(definitions))
        for cls in TYPES:
            shape, schema = inspect.type_info(cls), definitions[cls.__name__]
            assert isinstance(shape, inspect.StructType)
            self.assertIs(False, schema["additionalProperties"])
            self.assertEqual([field.encode_name for field in shape.fields], list(schema["properties"]))
            self.assertEqual([field.encode_name for field in shape.fields if field.required], schema["required"])
            for name, member in schema["properties"].items():
                self.assertTrue(member.get("description"), (cls, name))

    def test_rule(self) -> None:
        """A schema knows both protocols, the range of ports, and what HTTPS needs."""
        rule = rules_schema()["$defs"]["Rule"]

        self.assertEqual(["HTTPS", "HTTP"], rule["properties"]["protocol"]["enum"])
        self.assertEqual((1, 65535), (rule["properties"]["port"]["minimum"], rule["properties"]["port"]["maximum"]))
        self.assertEqual({"required": ["key_file", "cert_file"]}, rule["then"])

    def test_extensions(self) -> None:
        """What the specification has is not marked; what it has not says that it is an extension."""
        specified, ours = SpecifiedRule.__struct_fields__, Rule.__struct_fields__
        self.assertEqual(13, len(specified))
        members = rules_schema()["$defs"]["Rule"]["properties"]
        for name in ours:
            is_ours = name not in specified
            self.assertEqual(is_ours, members[name].get("x-extension", False), name)
            self.assertEqual(is_ours, members[name]["description"].startswith("Extension. "), name)

    def test_step(self) -> None:
        """A step has exactly one kind."""
        self.assertEqual([{"required": [kind]} for kind in KINDS], rules_schema()["$defs"]["Step"]["oneOf"])

    def test_agrees_with_the_reader(self) -> None:
        """Files that are right pass; what is wrong by its shape does not."""
        try:
            jsonschema: Any = importlib.import_module("jsonschema")
        except ImportError:
            raise SkipTest("jsonschema is not installed") from None
        validator = jsonschema.Draft202012Validator(rules_schema())
        jsonschema.Draft202012Validator.check_schema(rules_schema())
        for text in (read("etc/connector-rules.yaml"), *GOOD):
            self.assertEqual((text, []), (text, [each.message for each in validator.iter_errors(yaml.safe_load(text))]))
        for code, text, _ in BAD:
            if code in SEEN_BY_SCHEMA:
                self.assertFalse(validator.is_valid(yaml.safe_load(text)), text)


class TableTests(SynchronousTestCase):
    """
    Tests for the tables of the docs.
    """

    def test_rows(self) -> None:
        """Every field and every code has its row."""
        fields = rule_table() + step_table() + host_table()
        for cls in (Rule, Step, Host, Preprocessing, SetField, Regex, Probe):
            for name in cls.__struct_fields__:
                self.assertRegex(fields, rf"\| `([a-z]+\.)?{name}` \|")
        for code in (*FILE_CODES, *RULE_CODES, *ROUTER_CODES):
            self.assertIn(f"| `{code.word}` | {code.severity} | {code.meaning} |", code_table())

    def test_cells(self) -> None:
        """A row says what must be there, what is there without it, and what it means."""
        self.assertIn("| `port` | yes |  | The TCP port,", rule_table())
        self.assertIn("| `paths` |  | `/events`, `/events/(?P<HOST>.*)` |", rule_table())
        self.assertIn("| `preprocessing.classify` |  | `no` |", rule_table())
        self.assertIn("| `regex.field` |  | `log.body` |", step_table())

    def test_page(self) -> None:
        """The page holds the tables that the code makes."""
        page = read("docs/reference/connector-rules.md")
        for name, table in (
            ("connector-rule-fields", rule_table()),
            ("connector-rule-steps", step_table()),
            ("connector-rule-hosts", host_table()),
            ("connector-rule-codes", code_table()),
        ):
            self.assertEqual(page, with_table(page, name, table))
