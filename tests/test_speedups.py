"""Tests for L{webhookrx.speedups}."""

from __future__ import annotations

import os
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.message.escapes import encode_json
from webhookrx.speedups import PURE, compiled


def _missing(**environment: str) -> str:
    """Return why a new interpreter has no compiled path."""
    return subprocess.run(
        [sys.executable, "-c", "from webhookrx.speedups import missing; print(missing)"],
        env={**os.environ, **environment},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


class PureTests(SynchronousTestCase):
    """C{WEBHOOKRX_PURE} decides whether the compiled path is used."""

    def test_any_other_value_turns_it_off(self) -> None:
        """With C{1} there is no compiled path, and the reason names the variable."""
        self.assertEqual(_missing(**{PURE: "1"}), "WEBHOOKRX_PURE is set")

    def test_zero_and_nothing_leave_it_on(self) -> None:
        """With C{0} or nothing the reason never names the variable."""
        for value in ("0", ""):
            self.assertNotIn(PURE, _missing(**{PURE: value}))


class TextLineTests(SynchronousTestCase):
    """C{text_line} writes a body as Python does, or leaves it to Python."""

    if compiled is None:
        skip = "the compiled path is not in use"

    @given(st.one_of(st.binary(max_size=80), st.text(max_size=80).map(lambda text: text.encode("utf-8", "replace"))))
    def test_same_bytes_or_none(self, body: bytes) -> None:
        """What is written is what the encoder makes of the text."""
        assert compiled is not None
        line = compiled.text_line(body, b"<", b">")
        if line is not None:
            self.assertEqual(line, b"<" + encode_json(body.decode())[1:-1] + b">")
