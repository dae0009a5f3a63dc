"""The format options."""

from __future__ import annotations

import json

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.config.spec_options import SpecOptions
from webhookrx.errors import ConfigError
from webhookrx.message.encoders import encode_line
from webhookrx.observers.lines import render_line_for
from webhookrx.testing import make_message


class RenderLineTests(SynchronousTestCase):
    """Options become what renders a line."""

    def test_json(self) -> None:
        """Lines are JSON when nothing else is asked for, by one and the same function, so that observers share it."""
        for options in ({}, {"format": "json"}):
            self.assertIs(encode_line, render_line_for(SpecOptions("file", options)))
        self.assertEqual(
            "hello", json.loads(render_line_for(SpecOptions("file", {}))(make_message("hello")))["MESSAGE"]
        )

    def test_template(self) -> None:
        """A template renders lines; format=template beside it is welcome, not needed."""
        for options in ({"template": "<$MESSAGE>"}, {"format": "template", "template": "<$MESSAGE>"}):
            self.assertEqual(b"<hello>\n", render_line_for(SpecOptions("file", options))(make_message("hello")))

    def test_errors(self) -> None:
        """What can't be is an error that names the observer, the option and what is allowed."""
        cases = [
            ({"format": "xml"}, 'format="xml" is not known; it takes json or template'),
            ({"format": "template"}, "needs template=TEXT"),
            ({"format": "json", "template": "x"}, "template= goes with format=template"),
            ({"template": "${open"}, "column 1"),
        ]
        for options, text in cases:
            error = self.assertRaises(ConfigError, render_line_for, SpecOptions("stdout", options))

            self.assertIn("'stdout'", str(error))
            self.assertIn(text, str(error))
