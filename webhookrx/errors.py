"""
Every exception we raise on purpose, in one tree, and every reason for which a request is refused.

WebhookrxError
├── ConfigError       a setting can't be used: option, file and line, what is allowed
├── RequestRefused    a request can't become a message: a Reason, so a status and a word
├── NoRoom            the queue is full: 503, try later
├── NotStored         an observer could not make a message safe: 503, try later
│   └── Rejected      an observer rejects a message permanently: a retry would fail too
├── Unavailable       an observer can't take messages now: the same batch may be tried again
└── CannotStart       something that the settings name can't be opened: the process ends
"""

from __future__ import annotations

from typing import NamedTuple


class Reason(NamedTuple):
    """
    Why a request is refused: the word that senders, counters and log lines share, its HTTP status,
    and one sentence for people. The sentence never quotes what the sender wrote.
    """

    word: str
    status: int
    detail: str


NO_MATCHING_PATH = Reason("no_matching_path", 404, "No configured path pattern matches this path.")
METHOD_NOT_ALLOWED = Reason("method_not_allowed", 405, "Messages are sent with POST.")
SIGNATURE_MISSING = Reason(
    "signature_missing", 401, "The signature is missing, repeated, or not of the form that this sender uses."
)
BAD_SIGNATURE = Reason("bad_signature", 401, "None of the signatures is by a secret of this receiver.")
STALE_SIGNATURE = Reason("stale_signature", 401, "The signature is genuine, but too old or from the future.")
BAD_TOKEN = Reason("bad_token", 403, "The Authorization header is missing, repeated, or holds no accepted token.")
BAD_HANDSHAKE = Reason(
    "bad_handshake", 403, "The question shows no verify token of this source, or holds a text that is not answered."
)
ADDRESS_NOT_ALLOWED = Reason("address_not_allowed", 403, "This source takes nothing from this address.")
CLIENT_NOT_ALLOWED = Reason("client_not_allowed", 403, "This source takes nothing from this client certificate.")
BAD_ENCODING = Reason("bad_encoding", 400, "The path or the query is not UTF-8 after percent-decoding.")
BAD_REQUEST = Reason("bad_request", 400, "This is not well-formed HTTP/1.1.")
BAD_EXPECTATION = Reason("bad_expectation", 417, "The only supported expectation is 100-continue.")
BAD_PAYLOAD = Reason("bad_payload", 400, "The body is not a JSON object or array.")
TIMEOUT = Reason("timeout", 408, "The request took too long to arrive.")
BODY_TOO_LARGE = Reason("body_too_large", 413, "The body is larger than this receiver accepts.")
TOO_MANY_EVENTS = Reason("too_many_events", 413, "The body holds more events than this receiver takes apart.")
UNPACK_RATIO = Reason(
    "unpack_ratio", 413, "The body unpacks to more times its size on the wire than this receiver accepts."
)
TARGET_TOO_LONG = Reason("target_too_long", 414, "The request target is longer than this receiver accepts.")
OVER_QUOTA = Reason("over_quota", 429, "There are more requests than this source may take now.")
HEADERS_TOO_LARGE = Reason("headers_too_large", 431, "The headers are larger or more than this receiver accepts.")
UNSUPPORTED_ENCODING = Reason(
    "unsupported_encoding", 415, "Content-Encoding may be one of gzip, deflate, zstd, br or identity."
)
BAD_COMPRESSION = Reason("bad_compression", 400, "The body does not unpack by its Content-Encoding.")
NO_ROOM = Reason("no_room", 503, "There is no room for this message now.")
OVERLOADED = Reason("overloaded", 503, "There is more to do than this receiver can do now.")
TOO_MANY_CONNECTIONS = Reason("too_many_connections", 503, "There are too many open connections.")
DRAINING = Reason("draining", 503, "This endpoint is closing: the receiver stops, or listens elsewhere after a reload.")
NOT_STORED = Reason("not_stored", 503, "The message could not be made safe.")
KEY_UNAVAILABLE = Reason("key_unavailable", 503, "The key that this request must be checked with is not there now.")
INTERNAL_ERROR = Reason("internal_error", 500, "The receiver failed on this request; its log says where.")

REASONS: tuple[Reason, ...] = (
    NO_MATCHING_PATH,
    METHOD_NOT_ALLOWED,
    SIGNATURE_MISSING,
    BAD_SIGNATURE,
    STALE_SIGNATURE,
    BAD_TOKEN,
    BAD_HANDSHAKE,
    ADDRESS_NOT_ALLOWED,
    CLIENT_NOT_ALLOWED,
    BAD_ENCODING,
    BAD_REQUEST,
    BAD_EXPECTATION,
    BAD_PAYLOAD,
    TIMEOUT,
    BODY_TOO_LARGE,
    TOO_MANY_EVENTS,
    UNPACK_RATIO,
    TARGET_TOO_LONG,
    OVER_QUOTA,
    HEADERS_TOO_LARGE,
    UNSUPPORTED_ENCODING,
    BAD_COMPRESSION,
    NO_ROOM,
    OVERLOADED,
    TOO_MANY_CONNECTIONS,
    DRAINING,
    NOT_STORED,
    KEY_UNAVAILABLE,
    INTERNAL_ERROR,
)


class WebhookrxError(Exception):
    """The root of what we raise on purpose."""


class ConfigError(WebhookrxError):
    """
    A setting can't be used.

    @param problem: one sentence that quotes the offending text (never a secret) and says what is allowed.
    @param option: the option as a user writes it, such as C{--paths} or C{sources[0].paths}.
    @param where: where it was written: C{"command line"} or C{"FILE:LINE"}.
    """

    def __init__(self, problem: str, *, option: str = "", where: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.option = option
        self.where = where

    def __str__(self) -> str:
        return ": ".join(part for part in (self.where, self.option, self.problem) if part)


class RequestRefused(WebhookrxError):
    """
    A request can't become a message.

    @param detail: a sentence in place of the reason's own; it never echoes raw input or a secret.
    @param retry_after: seconds until it may come again; 0 when nothing is known of that.
    """

    def __init__(self, reason: Reason, detail: str | None = None, *, retry_after: int = 0) -> None:
        super().__init__(reason.word)
        self.reason = reason
        self.retry_after = retry_after
        self.detail = reason.detail if detail is None else detail


class NoRoom(WebhookrxError):
    """The queue holds as many messages or bytes as it may."""


class NotStored(WebhookrxError):
    """An observer could not make a message safe."""


class Rejected(NotStored):
    """An observer rejects a message permanently: a retry of the same message would fail too."""


class Unavailable(WebhookrxError):
    """
    An observer can't take messages now. None of the batch counts as safe; the same batch may be tried again.

    @param retry_after: seconds until the next try, as C{Retry-After} says; None without one.
    """

    def __init__(self, problem: str, *, retry_after: float | None = None) -> None:
        super().__init__(problem)
        self.retry_after = retry_after


class UnusableFile(WebhookrxError):
    """A file of our own is damaged; the text says how."""


class BundleRefused(WebhookrxError):
    """A bundle of a console can't be used; what the router has stays in use. The text quotes nothing of it."""


class StoreUnavailable(WebhookrxError):
    """The store of a console can't be used now; nothing of what was asked for is done."""


class StoreFull(StoreUnavailable):
    """The store of a console has no room for a change; nothing of it is done, and what can be read stays readable."""


class CantTap(WebhookrxError):
    """
    A tap can't be started as asked; the text says why, in one sentence or more.

    @ivar code: the same as a word.
    """

    def __init__(self, text: str, code: str = "bad_tap") -> None:
        super().__init__(text)
        self.code = code


class GateIsClosed(CantTap):
    """
    The reload gate is closed, and no tap starts meanwhile.

    @ivar paths: the files that are missing or can't be used.
    """

    def __init__(self, text: str, paths: tuple[str, ...]) -> None:
        super().__init__(text, "reload_gate_closed")
        self.paths = paths


class CannotStart(SystemExit, WebhookrxError):
    """
    Something that the settings name can't be opened, so the process can't do its work.

    As an C{Exception} it makes C{twistd} remove its pid file and, daemonised, tell the waiting parent the reason; as a
    C{SystemExit}, whose constructor must come first, it ends the interpreter with status 1 and its text as the last
    line, instead of a traceback.
    """
