"""
Tests for L{webhookrx.intake.provenance}.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.intake.head import Head, Peer
from webhookrx.intake.judge import Accepted, Admission, Receipt, SourceRules, judge
from webhookrx.intake.line_judge import judge_for_lines
from webhookrx.intake.provenance import (
    BatchPlace,
    ClientIdentity,
    Provenance,
    batch_members,
    line_part,
    moment,
    sender_members,
    set_provenance,
)
from webhookrx.message.encoders import encode_line
from webhookrx.message.escapes import encode_json
from webhookrx.message.macros import PROVENANCE
from webhookrx.message.message import Value

CLIENT = ClientIdentity("web-1", ("web-1.example", "192.0.2.1"), "CN=Test CA", "ab" * 32)
FULL = Provenance(
    "github",
    "signature",
    "new",
    "edge",
    "d-1",
    "2",
    1_767_323_045_000_000_000,
    BatchPlace(2, 3, b'{"status":"firing"}'),
)
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
PROVENANCES = st.builds(
    Provenance,
    sender=TEXTS,
    verified=st.sampled_from(["signature", "token", "client", "no"]),
    secret=TEXTS,
    token=TEXTS,
    delivery_id=TEXTS,
    attempt=TEXTS,
    signed_at=st.none() | st.integers(0, 10**19),
    batch=st.none()
    | st.builds(BatchPlace, st.integers(1, 9), st.integers(1, 9), st.sampled_from([b"", b'{"a":"\\n"}'])),
)


class PairsTests(SynchronousTestCase):
    """What messages of the source form say."""

    def test_all(self) -> None:
        """All that is known has its name, and all of these names are reserved."""
        values: dict[str, Value] = {}
        set_provenance(values, FULL)
        self.assertEqual(
            {
                "webhook.sender": "github",
                "webhook.verified": "signature",
                "webhook.secret": "new",
                "webhook.token": "edge",
                "webhook.delivery_id": "d-1",
                "webhook.attempt": "2",
                "webhook.signed_at": "2026-01-02T03:04:05Z",
                "webhook.batch.index": 2,
                "webhook.batch.count": 3,
                "webhook.batch.envelope": '{"status":"firing"}',
            },
            values,
        )
        self.assertEqual(PROVENANCE, {*values, *(f"webhook.client.{name}" for name in CLIENT.__struct_fields__)})

    def test_nothing_known(self) -> None:
        """That nothing is proved is said, too; what is not known has no name."""
        values: dict[str, Value] = {}
        set_provenance(values, Provenance())
        self.assertEqual({"webhook.verified": "no"}, values)

    @given(PROVENANCES)
    def test_line(self, provenance: Provenance) -> None:
        """In a line stands the same, in the same order."""
        values: dict[str, Value] = {}
        set_provenance(values, provenance)
        self.assertEqual(b"," + encode_json(values)[1:-1], line_part(provenance))

    def test_moments(self) -> None:
        """A moment is as precise as it was signed."""
        for nanoseconds, text in (
            (0, "1970-01-01T00:00:00Z"),
            (1_767_323_045_120_000_000, "2026-01-02T03:04:05.12Z"),
            (1_767_323_045_000_000_001, "2026-01-02T03:04:05.000000001Z"),
        ):
            self.assertEqual(text, moment(nanoseconds))


class RecordTests(SynchronousTestCase):
    """What messages of the router form say."""

    def test_all(self) -> None:
        """The same by other names; an envelope is an object."""
        self.assertEqual(
            {
                "id": "github",
                "verified": "signature",
                "secret": "new",
                "delivery_id": "d-1",
                "attempt": "2",
                "signed_at": "2026-01-02T03:04:05Z",
            },
            sender_members(FULL),
        )
        self.assertEqual({"verified": "no"}, sender_members(Provenance()))
        assert FULL.batch is not None
        self.assertEqual({"index": 2, "count": 3, "envelope": {"status": "firing"}}, batch_members(FULL.batch))
        self.assertEqual({"index": 1, "count": 1}, batch_members(BatchPlace(1, 1)))


class ForgeryTests(SynchronousTestCase):
    """A payload never says who has sent it, whatever the prefix is."""

    RECEIPT = Receipt(1_767_323_045_000_000_000, "id-1")
    HEAD = Head(b"POST", b"/", None, (), Peer("192.0.2.7", 40000, True, CLIENT))

    def lines(self, body: bytes, prefix: str, provenance: Provenance | None = FULL) -> Accepted:
        """Return what becomes of a body, the same by both paths."""
        rules = SourceRules("s", parse_json=True, prefix=prefix, body_limit=1000, unpack_ratio=100)
        admission = Admission(rules, {}, {}, [], provenance)
        expected = judge(self.HEAD, admission, body, self.RECEIPT)
        verdict = judge_for_lines(rules)[0](self.HEAD, admission, body, self.RECEIPT)
        assert isinstance(expected, Accepted)
        assert isinstance(verdict, Accepted)
        self.assertEqual(encode_line(expected.message), encode_line(verdict.message))
        self.assertEqual(list(expected.message.values.items()), list(verdict.message.values.items()))
        return verdict

    def test_names(self) -> None:
        """Each name, split into prefix and keys anywhere, is left out and counted."""
        for provenance in (None, FULL):
            expected = self.lines(b"{}", "", provenance).message.values
            for name in sorted(PROVENANCE):
                for split in range(len(name)):
                    prefix, key = name[:split], name[split:]
                    nested = '":{"'.join(key.split(".")) + '":"forged"' + "}" * key.count(".")
                    for body in (f'{{"{key}":"forged"}}', f'{{"{key}":{{}}}}', f'{{"{key}":[1]}}', f'{{"{nested}}}'):
                        accepted = self.lines(body.encode(), prefix, provenance)
                        self.assertEqual(1, accepted.left_out, body)
                        values = dict(accepted.message.values)
                        for other in ("MESSAGE", "RAWMSG_SIZE"):
                            values[other] = expected[other]
                        self.assertEqual(expected, values, body)

    def test_below(self) -> None:
        """What is below such a name is the payload's own."""
        for body in (b'{"sender":{"login":"alice"}}', b'{"sender.login":"alice"}'):
            accepted = self.lines(body, "webhook.")
            self.assertEqual(("alice", 0), (accepted.message.values["webhook.sender.login"], accepted.left_out))
            self.assertEqual("github", accepted.message.values["webhook.sender"])

    def test_client(self) -> None:
        """The client of the connection is said in each message, also where nothing else is found out."""
        values = self.lines(b'{"client":{"cn":"forged","x":1}}', "webhook.", None).message.values
        self.assertEqual(("web-1", ["web-1.example", "192.0.2.1"], 1), (
            values["webhook.client.cn"], values["webhook.client.san"], values["webhook.client.x"]
        ))  # fmt: skip
        self.assertNotIn("webhook.verified", values)
