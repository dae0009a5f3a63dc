"""
Requests as many kinds of senders make them: the recorded samples of webhookrx's own data, and texts in several
languages, each time with other digits and ids.
"""

from __future__ import annotations

import json
import random
import re
import uuid
from functools import cache
from importlib.resources import files

from webhookrx.senders.http_file import read_http_file

_LANGUAGES = (
    "payment accepted by the bank of the customer",
    "Zahlung über 12,50 € für „Müller & Söhne“ übernommen",
    "paiement accepté après vérification — déjà réglé",
    "支払いが承認されました、ありがとうございます",
    "оплата принята банком клиента",
    'said "it\'s fine",\n\tthen left: C:\\temp\\log 😀🎉',
)

_TEXTS = 4
"""One request of so many has a text."""

_DIGIT = re.compile(r"\\u[0-9a-fA-F]{4}|[1-9]")

_LEFT_OUT = {b"host", b"content-length", b"content-encoding", b"transfer-encoding", b"connection", b"expect"}
"""What the wire asks for, and whoever prepares the request writes or does without."""

_SAME = ("Content-Type:", "User-Agent:", "Accept")
"""How header lines begin that do not differ from delivery to delivery."""


@cache
def _samples() -> tuple[tuple[tuple[str, ...], str], ...]:
    """Return header lines and body of each sample whose body is an object of JSON."""
    found = []
    directory = files("webhookrx.senders").joinpath("data", "samples")
    for file in sorted(directory.iterdir(), key=lambda each: each.name):
        if not file.name.endswith(".http"):
            continue  # a public key that samples are verified with
        head, _, body = read_http_file(file.read_bytes())
        try:
            document = json.loads(body)
        except ValueError:
            continue
        if isinstance(document, dict) and document:
            # As they are mostly spelled on the wire; a Head has them in small letters.
            lines = [b"%b: %b" % (name.title(), value) for name, value in head.headers if name not in _LEFT_OUT]
            found.append((tuple(line.decode("latin-1") for line in lines), body.decode()))
    return tuple(found)


def _sample(number: int) -> tuple[tuple[str, ...], str]:
    """Return one after another for the numbers that L{recorded_body} takes one for."""
    return _samples()[(number // _TEXTS * (_TEXTS - 1) + number % _TEXTS) % len(_samples())]


def recorded_body(number: int, chance: random.Random) -> bytes:
    """Return the body of a sample with other digits and an id, or one time in L{_TEXTS} a text, escaped or not."""
    if number % _TEXTS == _TEXTS - 1:
        return _text_body(number, chance)
    _, body = _sample(number)
    # No digit becomes a zero, which no number may begin with, and \u0041 stays the character that it is.
    varied = _DIGIT.sub(lambda found: found[0] if found[0][0] == "\\" else chance.choice("123456789"), body)
    return varied.replace("{", f'{{"delivery":"{uuid.UUID(int=chance.getrandbits(128))}",', 1).encode()


def _text_body(number: int, chance: random.Random) -> bytes:
    document = {
        "id": str(uuid.UUID(int=chance.getrandbits(128))),
        "text": " ".join(chance.choices(_LANGUAGES, k=3)),
        "user": chance.choice(("Zoë", "Åsa", "Łukasz", "Ann", "李雷")),
        "amount": chance.randrange(10**5) / 100,
        "labels": {"größe": chance.choice(("klein", "groß")), "n": number, "none": None},
    }
    # As clients in Python and in PHP escape what is not ASCII, and as others don't.
    return json.dumps(document, ensure_ascii=number % (2 * _TEXTS) < _TEXTS, separators=(",", ":")).encode()


def recorded_headers(number: int, chance: random.Random) -> tuple[str, ...]:
    """Return the header lines of the sample, with other digits where deliveries differ."""
    lines, _ = _sample(number)
    return tuple(
        line if line.startswith(_SAME) else _DIGIT.sub(lambda _: chance.choice("123456789"), line) for line in lines
    )


def recorded_path(number: int) -> str:
    """Return a path, every other time with a query."""
    if number % 2:
        return "/events"
    return f"/events?source=shop-{number % 50}&delivery={number * 7919}&tag=a%20b&name=J%C3%BCrgen"
