"""
Tests for L{webhookrx.senders.plans}.
"""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests.senders.requests import compiled, evidence_of
from webhookrx.senders import plans
from webhookrx.senders.compiled import CompiledSender
from webhookrx.senders.extraction import extract

NAMES = ("a", "b", "0", "*", "c d", "events")
VALUES = st.recursive(
    st.sampled_from(["text", "", "high", "2026-11-20T10:00:00Z", 7, None]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=8,
)
PLACES = st.sampled_from(
    [
        "/a",
        "/b",
        "/0/a",
        "/*/b",
        "/c d",
        "/a/b",
        "/events/0/a",
        "same:/*/a",
        "tally:/events/*/b",
        "header:x",
        "header:z",
        "path",
    ]
)


@st.composite
def senders(draw: st.DrawFn) -> CompiledSender:
    """Return a definition with places anywhere."""
    texts = st.lists(PLACES.map("{{{}}}".format) | st.sampled_from([" ", ": ", " (", ")", "word"]), max_size=5).map(
        "".join
    )
    message = texts | st.builds(dict, text=texts, condition=st.sampled_from(["a EXISTS", "NOT b EXISTS"]))
    time = st.builds(dict, at=PLACES, condition=st.sampled_from(["", "a EXISTS"]))
    return compiled(
        events=draw(st.sampled_from(["", "/events", "/a"])),
        time=draw(st.lists(time, max_size=2)),
        message=draw(st.lists(message, max_size=2)),
        severity=draw(st.lists(st.builds(dict, at=PLACES), max_size=2)),
        host=draw(st.lists(PLACES, max_size=2)),
    )


class PlanTests(SynchronousTestCase):
    """The part of a definition that a request has use for."""

    @given(senders(), VALUES)
    def test_same(self, sender: CompiledSender, body: Any) -> None:
        """A request yields by its plan what it yields by all of the definition."""
        found = extract(sender, evidence_of(body, {"x": "X"}))
        whole = sender.plans.whole
        with patch.object(plans.Plans, "plan", lambda *arguments: whole):
            self.assertEqual(extract(sender, evidence_of(body, {"x": "X"})), found)

    def test_left_out(self) -> None:
        """A plan has what is outside of the body, and what is in it if its first step is there, in the same order."""
        sender = compiled(
            time=[{"at": "/b"}, {"at": "/a/x"}, {"at": "query:t"}],
            severity=[{"at": "/c"}, {"at": "header:x"}],
            message=["{/b}", "{/c} {/a}", "plain"],
            host=["/b", "/a"],
        )
        plan = sender.plans.plan({"a": 1, "d": 2}, {"a": 1, "d": 2})
        self.assertEqual([place.text for place, *_ in plan.times], ["/a/x", "query:t"])
        self.assertEqual([place.text for place, _ in plan.severities], ["header:x"])
        self.assertEqual([text.text for text, _ in plan.messages], ["{/c} {/a}", "plain"])
        self.assertEqual([text.text for text in plan.hosts], ["/a"])

    def test_kept(self) -> None:
        """Requests of one kind have one plan; those of very many kinds do not fill the memory."""
        sender = compiled(message=[f"/{number}" for number in range(1000)])
        first = sender.plans.plan({"1": "x", "other": 1}, None)
        self.assertIs(sender.plans.plan({"1": "y", "another": 2}, None), first)
        for number in range(1000):
            plan = sender.plans.plan({str(number): 0}, None)
            self.assertEqual(len(plan.messages), 1)
        self.assertLessEqual(sender.plans.known, 64)
