"""Tests for L{webhookrx.senders.signatures.scheme_compilation}, L{...places} and L{...signed_text}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.senders.definitions import read_definition

_HEAD = b"id: a\nvendor: a\nproduct: a\nwhen: {body_keys: [a]}\nsettings: {one: {meaning: m}}\n"


def _found(verify: str) -> list[tuple[str, str, int, int]]:
    """Return code, field, line and column of what is wrong with the C{verify} of a file; its first line is 6."""
    definition, diagnostics = read_definition(_HEAD + b"verify:\n" + verify.encode(), "f")
    assert (definition is None) == bool(diagnostics), diagnostics
    return [(each.code, each.field, each.line - 5, each.column) for each in diagnostics]


class MistakeTests(SynchronousTestCase):
    """A scheme that can't be used, or proves nothing."""

    def test_good(self) -> None:
        """Schemes of all kinds can be read."""
        for verify in (
            "  {at: 'header:a'}\n",
            (
                "  - {at: ['header:A', 'header:b-*', 'query:c'], prefix: 'v0=', encoding: base64url}\n"
                "  - {at: /a/b, algorithm: hmac-sha512, key: hex}\n"
                "  - {at: /a/*/b, algorithm: equal, encoding: base64}\n"
            ),
            "  {at: 'header:a', items: [' ', ','], signature: v1, signed: '{item:t}{body}', time: {at: 'item:t'}}\n",
            "  {at: 'header:a', signed: '{header:T}{wire}{setting:one}', time: {at: 'header:t', format: rfc3339}}\n",
            "  {at: 'header:a', time: {at: /t, format: unix-ms}, tolerance: 90}\n",
            "  {at: 'header:a', algorithm: sha1, signed: '{secret}{query:x}'}\n",
            "  {at: 'header:a', algorithm: rsa-sha1, key: pem, signed: '{form:payload}'}\n",
            "  {code: jwt, at: 'header:a', algorithms: [HS256], claims: {sha256: '{body:sha256}'}}\n",
            "  {code: sns}\n",
        ):
            self.assertEqual([], _found(verify), verify)

    def test_words(self) -> None:
        """Each unknown word, and each that does not go with the others, is told in its place."""
        found = _found(
            "  - {at: /a, algorithm: md5, encoding: utf8, key: x}\n"
            "  - {at: 'header:a', algorithm: equal, key: hex}\n"
            "  - {at: /a, encoding: text}\n"
            "  - {at: 'header:a', algorithm: equal, items: '/', time: {at: /t}, signed: '{url}'}\n"
            "  - {code: ebay}\n"
            "  - {code: sns, encoding: base64}\n"
            "  - {at: /a, algorithms: [HS256], claims: {a: b}}\n"
        )
        self.assertEqual({"entry-signature"}, {code for code, *_ in found})
        self.assertEqual(
            [
                ("verify[0].algorithm", 2, 25),
                ("verify[0].encoding", 2, 40),
                ("verify[0].key", 2, 51),
                ("verify[1].key", 3, 45),
                ("verify[2].encoding", 4, 24),
                ("verify[3].items", 5, 47),
                ("verify[3].time", 5, 58),
                ("verify[3].time.at", 5, 63),
                ("verify[3].signed", 5, 76),
                ("verify[4].code", 6, 12),
                ("verify[5].encoding", 7, 27),
                ("verify[6].algorithms", 8, 26),
                ("verify[6].claims", 8, 43),
            ],
            [(field, line, column) for _, field, line, column in found],
        )

    def test_places(self) -> None:
        """A place that is none is told with its column."""
        for at, column in (
            ("path", 0),
            ("header:", 7),
            ("header:a b", 7),
            ("header:*", 7),
            ("header:a*", 7),
            ("header:a-*-*", 7),
            ("query:", 0),
            ("cookie:a", 0),
            ("/~", 1),
            ("/a/[b=c]/d", 3),
            ("/a/*", -1),
            ("", 0),
        ):
            self.assertEqual([("entry-place", "verify.at", 2, 8 + column)], _found(f"  at: '{at}'\n"), at)
        found = _found("  at: ['header:a', 'header:']\n")
        self.assertEqual([("entry-place", "verify.at[1]", 2, 28)], found)
        self.assertEqual([("entry-signature", "verify.at", 2, 3)], _found("  prefix: a\n"))
        self.assertEqual([("entry-signature", "verify.at", 2, 3)], _found("  code: twilio\n"))

    def test_lists(self) -> None:
        """A list has one place, separators, and names only where it has a name for signatures."""
        for members, field in (
            ("at: 'header:a', items: ''", "items"),
            ("at: 'header:a', items: [',', '=', ';'], signature: a", "items"),
            ("at: 'header:a', items: [',', ''], signature: a", "items"),
            ("at: ['header:a', 'header:b'], items: ','", "items"),
            ("at: 'header:a', items: [',', '=']", "signature"),
            ("at: 'header:a', signature: v1", "signature"),
            ("at: 'header:a', signed: '{item:t}{body}'", "signed"),
            ("at: 'header:a', items: ',', signature: v1, signed: '{item:v1}{body}'", "signed"),
        ):
            found = [(code, name) for code, name, *_ in _found(f"  {{{members}}}\n")]
            self.assertEqual([("entry-signature", f"verify.{field}")], found, members)

    def test_signed(self) -> None:
        """What is signed is of the request, and holds the secret for plain digests alone."""
        for members, code in (
            ("signed: ''", "entry-signature"),
            ("signed: 'v0:'", "entry-signature"),
            ("signed: '{secret}', algorithm: sha256", "entry-signature"),
            ("signed: '{body}', algorithm: sha256", "entry-signature"),
            ("signed: '{secret}{body}'", "entry-signature"),
            ("signed: '{setting:two}{body}'", "entry-signature"),
            ("signed: '{body'", "entry-place"),
            ("signed: '{}'", "entry-place"),
            ("signed: '{host}'", "entry-place"),
            ("signed: '{cookie:a}'", "entry-place"),
            ("signed: '{header:}'", "entry-place"),
            ("signed: '{header:a b}'", "entry-place"),
            ("signed: '{/a/*/b}'", "entry-place"),
            ("signed: '{/~}'", "entry-place"),
        ):
            found = [(code, name) for code, name, *_ in _found(f"  {{at: 'header:a', {members}}}\n")]
            self.assertEqual([(code, "verify.signed")], found, members)
        self.assertEqual(
            [("entry-place", "verify.signed", 2, 40)], _found("  {at: 'header:a', signed: 'v0:{header:a b}'}\n")
        )

    def test_time(self) -> None:
        """A time is signed, of a known format, and bounded by a day."""
        for members, field, code in (
            ("time: {at: 'header:t'}", "time.at", "entry-signature"),
            ("signed: '{url}', time: {at: /t}", "time.at", "entry-signature"),
            ("time: {at: path}", "time.at", "entry-place"),
            ("time: {at: 'method'}", "time.at", "entry-place"),
            ("time: {at: /t, format: unix-ns}", "time.format", "entry-format"),
            ("time: {at: /t}, tolerance: soon", "tolerance", "entry-signature"),
            ("time: {at: /t}, tolerance: 0", "tolerance", "entry-signature"),
            ("time: {at: /t}, tolerance: 25h", "tolerance", "entry-signature"),
            ("tolerance: 1m", "tolerance", "entry-signature"),
        ):
            found = [(code, name) for code, name, *_ in _found(f"  {{at: 'header:a', {members}}}\n")]
            self.assertEqual([(code, f"verify.{field}")], found, members)

    def test_claims(self) -> None:
        """The texts of claims are read like what is signed."""
        found = _found(
            "  {code: jwt, at: 'header:a', algorithms: [ES256], claims: {a: '{body', b: ['x', '{setting:two}']}}\n"
        )
        self.assertEqual(
            [("entry-place", "verify.claims.a"), ("entry-signature", "verify.claims.b[1]")],
            [(code, field) for code, field, *_ in found],
        )

    def test_token_algorithms(self) -> None:
        """The algorithms of tokens are named, known, and all with secrets or all with public keys."""
        for algorithms, words in (
            ("", "missing"),
            ("none", "'none' is not one of"),
            ("HS256, PS256", "'PS256' is not one of"),
            ("HS256, RS256", "don't go together"),
        ):
            verify = f"verify: {{code: jwt, at: 'header:a', algorithms: [{algorithms}]}}\n"
            _, (found,) = read_definition(_HEAD + verify.encode(), "f")
            self.assertEqual(("entry-signature", "verify.algorithms"), (found.code, found.field))
            self.assertIn(words, found.sentence)
