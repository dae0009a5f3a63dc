"""
Signatures that others have made, or that an independent engine has: all schemes, right and wrong.
"""

from __future__ import annotations

from base64 import b64decode
from collections import Counter
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from tests.senders.signatures.requests import SECOND, begin, scheme_of, verdict, verifier_of
from webhookrx.quantities import parse_duration
from webhookrx.senders.definitions import builtin_definitions
from webhookrx.senders.signatures.scheme import SignatureScheme
from webhookrx.senders.signatures.verification import Verification

_FILE: Final = msgspec.json.decode(Path(__file__).with_name("vectors.json").read_bytes())
SCHEMES: Final[dict[str, dict[str, Any]]] = _FILE["schemes"]
VECTORS: Final[list[dict[str, Any]]] = _FILE["vectors"]

#: The verdicts on a request; with each in which pieces its body comes.
_PIECES: Final = (None, 1, 7, 64)


class VectorTests(SynchronousTestCase):
    """The vectors."""

    def test_verdicts(self) -> None:
        """Each vector has the verdict that it says, whether its body comes at once or in pieces."""
        wrong = []
        for vector in VECTORS:
            for size in _PIECES:
                found = _verdict(vector, size)
                if found != vector["expect"]:
                    wrong.append((vector["id"], vector["case"], size, vector["expect"], found))
        self.assertEqual([], wrong)

    def test_all_there(self) -> None:
        """Each scheme has a vector that is good, and one that is bad."""
        good = Counter(vector["id"] for vector in VECTORS if vector["expect"].startswith("ok:"))
        bad = Counter(vector["id"] for vector in VECTORS if not vector["expect"].startswith("ok:"))
        self.assertEqual([], [name for name in SCHEMES if not (good[name] and bad[name])])
        self.assertGreaterEqual(len(VECTORS), 513)

    def test_published(self) -> None:
        """Deliveries that senders or their libraries publish verify."""
        published = [vector for vector in VECTORS if "verify" in vector]
        self.assertGreaterEqual(len(published), 28)
        self.assertEqual([], [vector["case"] for vector in published if _verdict(vector, None) != vector["expect"]])


def _verdict(vector: dict[str, Any], size: int | None) -> str:
    url = urlsplit(vector["url"])
    scheme = vector.get("verify") or SCHEMES[vector["id"]]
    if vector["now"] is None:
        scheme = {name: value for name, value in scheme.items() if name not in ("time", "tolerance")}
    verifier = verifier_of(
        scheme, secrets=vector["secrets"], public_url=f"{url.scheme}://{url.netloc}" if url.netloc else ""
    )
    target = url.path + (f"?{url.query}" if url.query else "")
    verification = begin(verifier, vector["headers"], url=target or "/", method=vector["method"])
    body = b64decode(vector["body_base64"])
    if size is not None:
        _feed(verification, body, size)
    return verdict(verification.finish(body, (vector["now"] or 0) * SECOND))


def _feed(verification: Verification, body: bytes, size: int) -> None:
    for start in range(0, len(body), size):
        verification.update(body[start : start + size])


class DefinitionTests(SynchronousTestCase):
    """The definitions of the package."""

    def test_schemes(self) -> None:
        """Each scheme that the vectors are for is that of a definition."""
        known = [scheme for definition in builtin_definitions() for scheme in definition.schemes]
        missing = [name for name, members in SCHEMES.items() if not any(_is(each, members) for each in known)]
        self.assertEqual([], missing)


def _is(scheme: SignatureScheme, members: dict[str, Any]) -> bool:
    """Tell whether a scheme has these members, with durations as numbers, and no others that decide anything."""
    wanted = scheme_of(**members)
    return replace(scheme, setting="", tolerance="") == replace(wanted, tolerance="") and parse_duration(
        scheme.tolerance
    ) == parse_duration(wanted.tolerance)
