"""
Tests for L{webhookrx.router.expressions.hiding}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.router.expressions import compile_expression, is_mask


class HidingTests(SynchronousTestCase):
    """What removes or masks something."""

    def test_hides(self) -> None:
        """A program hides something when any of its statements does, however deep."""
        for text in (
            "unset(log.body.password);",
            "if (log.body.a == 1) { if (true) { unset(log.body.a); }; };",
            'log.body.text = regexp_subst(log.body.text, "[0-9]+", "x");',
            'log.body.text = str_replace(log.body.text, "secret", "***");',
            "log.body.user = sha256(log.body.user);",
            'log.body.password = "***";',
            'log.body["password"] = "[redacted]";',
            'log.body.password = "";',
            "log.body.password = null;",
            'log.body.card = "XXXX-" + log.body.card[-4..];',
            'switch (log.body.a) { case 1: log.body.b = "***"; };',
            'log.body = {"user": md5(log.body.user)};',
        ):
            self.assertTrue(compile_expression(text).hides, text)

    def test_does_not(self) -> None:
        """What only adds or changes something hides nothing."""
        for text in (
            "",
            "drop;",
            'log.body.a = "b";',
            "log.body.a = 1;",
            'log.body.a = log.body.b + "-" + log.body.c;',
            'log.body.text = str_replace(log.body.text, "a", "b");',
            'meta.note = "";',
            'x = "***";',
            'log.body.level = lower(log.body.level); if (log.body.a == "***") { log.body.b = true; };',
        ):
            self.assertFalse(compile_expression(text).hides, text)

    def test_masks(self) -> None:
        """A mask is nothing, signs only, or a short text that says that something is hidden."""
        for value in (None, "", "***", "•••", "__", "[REDACTED]", "<removed by policy>", "xxxx", "hidden"):
            self.assertTrue(is_mask(value), value)
        for value in (0, False, "ERROR", "secops", "a" * 10, {}, [], "It was removed from the room, since " + "x" * 64):
            self.assertFalse(is_mask(value), value)
