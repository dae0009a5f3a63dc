"""
C{splunk-hec:URL}: sends events to Splunk's HTTP Event Collector, and asks whether they are indexed, if that is wanted.

The codes of its answers are those of "Troubleshoot HTTP Event Collector" in Splunk's documentation; see also
U{https://help.splunk.com/en/splunk-enterprise/get-data-in/collect-http-event-data/troubleshoot-http-event-collector}.
Indexer acknowledgement is that of
U{https://docs.splunk.com/Documentation/Splunk/9.3.0/Data/AboutHECIDXAck}: without it a 200 says that the events look
valid, before they enter the pipeline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final
from uuid import uuid4

from webhookrx.observers.batch_limits import BatchLimits
from webhookrx.observers.http_stores.exchange import CutAnswer, Header, HTTPAnswer, StoreRequest, UnreadableAnswer
from webhookrx.observers.http_stores.http import REDIRECTION_HINT
from webhookrx.observers.http_stores.store import Finding, HTTPStore, Question, Reading, Verdict
from webhookrx.settings import MiB

EVENTS: Final = "/services/collector/event"
"""Where events go."""
ACKS: Final = "/services/collector/ack"
"""Where acknowledgements are asked for."""
LIMITS: Final = BatchLimits(messages=5000, size=5 * MiB)
"""The defaults."""

ACK_PAUSE: Final = 1.0
"""Seconds before each question whether events are indexed. Splunk advises 10, for many requests at a time."""
NO_ACK_PAUSE: Final = 60.0
"""Seconds before events are sent again that can't be acknowledged: each time they are indexed once more."""

#: Successful, and the same with a warning that a queue is nearly full.
_SUCCESS: Final = frozenset({0, 24, 25})

#: What is wrong with an event itself: its format, its C{event} field, its C{fields}.
_REFUSALS: Final = frozenset({6, 12, 13, 15})

#: What an operator can check, by code.
_HINTS: Final = {
    1: "the token is disabled",
    2: "look at token_file=",
    3: "look at token_file=",
    4: "look at token_file=",
    7: "look at index= and at the indexes that the token allows",
    10: "the token asks for indexer acknowledgement: ack=indexer",
    11: "the channel is invalid",
    14: "the token has no indexer acknowledgement: enable it, or ack=none",
    21: "look at token_file=",
    22: "the token is disabled",
    23: "shutting down",
    26: "its queue is full",
    27: "it has too many events to acknowledge",
}
#: The same by status, where there is no code.
_STATUS_HINTS: Final = {
    401: "look at token_file=",
    403: "look at token_file=",
    404: "look at the URL",
}

_NO_ACK_ID: Final = Finding(
    Verdict.LATER, "without ackId: the token has no indexer acknowledgement; enable it, or ack=none", pause=NO_ACK_PAUSE
)


class AckChannel:
    """
    The channel of requests, in which their ackIds are unique as long as they come from one indexer.

    After a request whose ackId was not seen to be true there is a new one: behind a load balancer, another indexer may
    give the same number to a later request, and the true of the earlier one would count for that.

    @ivar name: a GUID.
    """

    def __init__(self) -> None:
        self.name = ""
        self._is_clean = False

    def begin(self) -> None:
        """Begin a request."""
        if not self._is_clean:
            self.name = str(uuid4())
        self._is_clean = False

    def acknowledged(self) -> None:
        """Note that nothing is left in it: Splunk forgets an ackId once it has said that it is true."""
        self._is_clean = True


@dataclass(frozen=True, kw_only=True)
class SplunkHEC(HTTPStore):
    """
    Splunk's HTTP Event Collector.

    @ivar path: where events go.
    @ivar ack_path: where acknowledgements are asked for.
    @ivar channel: that of requests with indexer acknowledgement; None without it.
    """

    limits: BatchLimits = LIMITS
    path: str = EVENTS
    ack_path: str = ACKS
    channel: AckChannel | None = field(default=None, repr=False)

    def make(self, lines: Sequence[bytes]) -> StoreRequest:
        """Join events; there is no array of them. Only the channel differs between tries."""
        content = self.pack(b"".join(lines))
        if self.channel is None:
            return StoreRequest(content, path=self.path)
        self.channel.begin()
        return StoreRequest(content, _in_channel(self.channel.name), self.path)

    def read(self, answer: HTTPAnswer, count: int) -> Reading:
        """Tell it by status and code. Only a 200 and a 400 decide; what stands in front of Splunk answers, too."""
        if answer.status == 413:
            return Finding(Verdict.REFUSED, "too large; look at batch_size=", answer.beginning)
        if answer.status not in (200, 400):
            return Finding(Verdict.LATER, _hint(answer), answer.beginning)
        said = _read_object(answer)
        code = said.get("code")
        if type(code) is not int:
            raise UnreadableAnswer(f"{answer.describe()}, but without a code")
        if answer.status == 200 and code in _SUCCESS:
            return Finding(Verdict.STORED) if self.channel is None else self._ask(said, self.channel)
        if answer.status == 400 and code in _REFUSALS:
            suspect = said.get("invalid-event-number")
            place = suspect if type(suspect) is int else None
            return Finding(Verdict.REFUSED, f"code {code}", answer.beginning, suspect=place)
        return Finding(Verdict.LATER, _hint(answer), answer.beginning)

    def _ask(self, said: Mapping[str, Any], channel: AckChannel) -> Reading:
        number = said.get("ackId")
        return self._question(number, channel) if type(number) is int and number >= 0 else _NO_ACK_ID

    def _question(self, number: int, channel: AckChannel) -> Question:
        content = self.pack(b'{"acks":[%d]}' % number)
        request = StoreRequest(content, _in_channel(channel.name), self.ack_path)
        return Question(request, partial(self._confirm, number=number, channel=channel), ACK_PAUSE)

    def _confirm(self, answer: HTTPAnswer, number: int, channel: AckChannel) -> Finding | Question:
        """Read what is said of an ackId: true once it is indexed; false before that, and where it is not known."""
        if answer.status != 200:
            return Finding(Verdict.LATER, _hint(answer), answer.beginning)
        acks = _read_object(answer).get("acks")
        is_indexed = acks.get(str(number)) if isinstance(acks, dict) else None
        if is_indexed is True:
            channel.acknowledged()
            return Finding(Verdict.STORED)
        if is_indexed is not False:
            raise UnreadableAnswer("it does not say whether the events are indexed")
        return self._question(number, channel)


def _in_channel(name: str) -> tuple[Header, ...]:
    return ((b"X-Splunk-Request-Channel", name.encode()),)


def _read_object(answer: HTTPAnswer) -> dict[str, Any]:
    """
    @raise CutAnswer: it is too long.
    @raise UnreadableAnswer: it is no object.
    """
    said = answer.json()
    if not isinstance(said, dict):
        raise UnreadableAnswer(f"{answer.describe()}, but no JSON object")
    return said


def _hint(answer: HTTPAnswer) -> str:
    """Return code and hint of an answer that decides nothing."""
    if 300 <= answer.status < 400:
        return REDIRECTION_HINT
    with suppress(CutAnswer, UnreadableAnswer):
        code = _read_object(answer).get("code")
        if type(code) is int:
            return f"code {code}: {_HINTS[code]}" if code in _HINTS else f"code {code}"
    return _STATUS_HINTS.get(answer.status, "")
