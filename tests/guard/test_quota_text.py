"""
Tests for L{webhookrx.guard.quota_text}.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.errors import ConfigError
from webhookrx.guard.quota import PER, SourceQuota
from webhookrx.guard.quota_text import quota_members, quota_of, show_quota

QUOTAS = {
    "messages=100/s": SourceQuota(messages=100.0),
    "bytes=10MiB/s": SourceQuota(bytes=10.0 * 1024**2),
    "messages=100/s,bytes=10MiB/s,burst=10s,per=source": SourceQuota(100.0, 10.0 * 1024**2, 10.0, "source"),
    " messages = 6 / m , per = address ": SourceQuota(messages=0.1, per="address"),
    "messages=0.5/s": SourceQuota(messages=0.5),
    "bytes=86400/d,burst=1h,per=token": SourceQuota(bytes=1.0, burst=3600.0, per="token"),
    "messages=7200/h": SourceQuota(messages=2.0),
}

MISTAKES = {
    "": '"" is not of the form NAME=VALUE; write for example messages=100/s.',
    "100/s": '"100/s" is not of the form NAME=VALUE; write for example messages=100/s.',
    "messages=100/s,": '"" is not of the form NAME=VALUE; write for example messages=100/s.',
    "mesages=1/s": '"mesages" is not one of messages, bytes, burst, per. Did you mean "messages"?',
    "messages=1/s,messages=2/s": '"messages" is given twice.',
    "burst=10s": "A quota needs messages, bytes or both, such as messages=100/s or bytes=10MiB/s.",
    "per=source": "A quota needs messages, bytes or both, such as messages=100/s or bytes=10MiB/s.",
    "messages=100": '"100" is not a rate; write an amount and a period, /s, /m, /h or /d, such as 100/s.',
    "messages=100/w": '"100/w" is not a rate; write an amount and a period, /s, /m, /h or /d, such as 100/s.',
    "messages=/s": '"/s" is not a rate of messages; write a number more than 0, such as 100/s.',
    "messages=0/s": '"0/s" is not a rate of messages; write a number more than 0, such as 100/s.',
    "messages=-1/s": '"-1/s" is not a rate of messages; write a number more than 0, such as 100/s.',
    "messages=\u0663/s": '"\u0663/s" is not a rate of messages; write a number more than 0, such as 100/s.',
    "bytes=0/s": '"0/s" lets nothing pass; write more than 0, such as 10MiB/s.',
    "messages=1/s,burst=0": '"0" is too short for a burst; write more than 0, such as 10s.',
    "messages=1/s,per=ip": '"ip" is not one of source, token, address.',
}


def read(text: str) -> SourceQuota:
    """Return the quota of a text."""
    return quota_of(quota_members(text))


class QuotaTextTests(SynchronousTestCase):
    """
    Tests for L{quota_members}, L{quota_of} and L{show_quota}.
    """

    def test_quotas(self) -> None:
        """Rates are of a second, minute, hour or day; a burst is ten seconds and of the source unless it is said."""
        for text, quota in QUOTAS.items():
            self.assertEqual(quota, read(text), text)

    def test_mistakes(self) -> None:
        """A mistake is quoted, with what is allowed."""
        for text, sentence in MISTAKES.items():
            error = self.assertRaises(ConfigError, read, text)
            self.assertEqual(sentence, str(error))

    def test_units(self) -> None:
        """A size or time that is none is an error in the words of sizes and times."""
        for text, start in (("bytes=ten/s", "'ten' is not a size"), ("messages=1/s,burst=x", "'x' is not a duration")):
            self.assertIn(start, str(self.assertRaises(ConfigError, read, text)))

    @given(
        st.integers(1, 10**9),
        st.one_of(st.none(), st.integers(1, 2**40)),
        st.sampled_from("smhd"),
        st.integers(1, 10**6),
        st.sampled_from(PER),
    )
    def test_shown(self, messages: int, size: int | None, period: str, burst: int, per: str) -> None:
        """A quota that is shown can be read again, and says the same."""
        text = f"messages={messages}/{period},burst={burst}ms,per={per}" + (f",bytes={size}/{period}" if size else "")
        quota = read(text)
        again = read(show_quota(quota))
        self.assertAlmostEqual(quota.messages, again.messages)
        self.assertAlmostEqual(quota.bytes or 0, again.bytes or 0)
        self.assertEqual((quota.burst, quota.per), (again.burst, again.per))
