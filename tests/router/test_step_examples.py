"""The examples in C{docs/reference/processing-steps.md}."""

from __future__ import annotations

import pathlib
import re

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from tests import documents
from webhookrx.diagnostics import CODES
from webhookrx.router.steps import step_compiler as steps
from webhookrx.router.steps.processing import Processing
from webhookrx.router.steps.step import KINDS, Preprocessing, Step
from webhookrx.router.steps.step_compiler import step_problems
from webhookrx.senders.classifier import Classifier
from webhookrx.typed_yaml import read_typed


class _Example(msgspec.Struct):
    """What an example holds: all of a rule's preprocessing, or steps only."""

    preprocessing: Preprocessing = Preprocessing()
    steps: tuple[Step, ...] = ()


class ExampleTests(SynchronousTestCase):
    """Tests for the page."""

    def test_examples(self) -> None:
        """Every example is right, there is one for each kind, and all of them compile."""
        shown = set()
        for block in documents.blocks(documents.read("docs/reference/processing-steps.md")):
            reading = read_typed(block.text.encode(), "example", _Example)
            self.assertEqual(reading.diagnostics, [])
            assert reading.value is not None
            preprocessing = reading.value.preprocessing
            all_steps = (*preprocessing.steps, *reading.value.steps)
            self.assertEqual([problem for step in all_steps for problem in step_problems(step, 1)], [])
            Processing(preprocessing, Classifier([]))
            shown |= {kind for step in all_steps for kind in KINDS if getattr(step, kind) is not None}
        self.assertEqual(shown, set(KINDS))

    def test_codes(self) -> None:
        """The codes in its table are those of the catalogue, and all that steps have."""
        table = documents.read("docs/reference/processing-steps.md").partition("| code |")[2]
        codes = re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE)
        self.assertEqual([code for code in codes if code not in CODES], [])
        package = pathlib.Path(steps.__file__).parent
        used = {
            code
            for path in package.glob("*step*.py")
            for code in re.findall(r'(?:add|doubt)\(\s*"([a-z-]+)"', path.read_text())
        }
        self.assertEqual(used, set(codes) - {"parse-without-classify"})

    def test_defaults(self) -> None:
        """The Regex example shows what is there when nothing is written."""
        shown = next(
            b for b in documents.blocks(documents.read("docs/reference/processing-steps.md")) if "regex:" in b.text
        )
        value = read_typed(shown.text.encode(), "example", _Example).value
        assert value is not None and value.steps[0].regex is not None
        regex = value.steps[0].regex
        self.assertEqual(regex, type(regex)(regex.pattern))
