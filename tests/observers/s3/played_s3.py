"""S3 as the s3 observer meets it: played in the place of its client."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import zstandard
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    GenericError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from pyarrow import parquet

from webhookrx.observers.s3.client import NoAnswerInTime
from webhookrx.observers.s3.objects import PackedObject

URL = "http://127.0.0.1:9/logs/OBJECT"
"""Stands for the URL of the object in texts of errors."""

#: The exceptions of object_store by status (C{RetryError::error} in client/retry.rs); others are generic.
_CLASSES: dict[int, type[Exception]] = {
    401: UnauthenticatedError,
    403: PermissionDeniedError,
    404: FileNotFoundError,
    409: AlreadyExistsError,
    # What PutMode::Create makes of NotModified and Precondition.
    304: AlreadyExistsError,
    412: AlreadyExistsError,
}


def answer(status: int, code: str = "", message: str = "", url: str = URL) -> Exception:
    """Return the exception of obstore for an answer of the service, or of another that it asks for credentials."""
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{message}</Message></Error>" if code else message
    kind = _CLASSES.get(status, GenericError)
    return kind(
        f"Generic S3 error: Error performing PUT {url} in 41.9ms - Server returned non-2xx "
        f'status code: {status} Whatever: {body}\n\nDebug source:\nGeneric {{\n    store: "S3" }}'
    )


def unanswered(cause: str, url: str = URL) -> BaseError:
    """Return the exception of obstore when there is no answer."""
    return GenericError(
        f"Generic S3 error: Error performing PUT {url} in 0.1ms - HTTP error: error sending "
        f"request\n\nDebug source:\n{cause}"
    )


class PlayedBucket:
    """
    Objects by name.

    @ivar fail: what each request is answered with; None to do as it should.
    @ivar lose: store the next object, and lose the answer.
    @ivar drop: lose the next request.
    @ivar largest: bytes of the largest object.
    @ivar refused: a text; objects with it are too large.
    """

    def __init__(self, sleep: Callable[[float], object]) -> None:
        self.objects: dict[str, PackedObject] = {}
        self.requests: list[PackedObject] = []
        self.fail: Exception | None = None
        self.lose = self.drop = self.is_stalled = False
        self.refused: str | None = None
        self.credentials: Any = None
        self.clients = 0
        self.sleep = sleep

    def connect(self, target: Any, credentials: Any) -> PlayedClient:
        """Take the place of L{ObstoreClient}."""
        self.clients += 1
        return PlayedClient(self, credentials)


class PlayedClient:
    """Puts objects."""

    def __init__(self, bucket: PlayedBucket, credentials: Any) -> None:
        self.bucket = bucket
        self.credentials = credentials
        self.is_closed = False

    def put(self, packed: PackedObject, steps: Iterator[float]) -> None:
        """Put an object."""
        assert not self.is_closed
        bucket = self.bucket
        bucket.requests.append(packed)
        bucket.credentials = self.credentials
        if bucket.is_stalled:
            for step in steps:
                bucket.sleep(step)
            raise NoAnswerInTime
        if bucket.drop:
            bucket.drop = False
            raise unanswered("ConnectionReset")
        if bucket.fail is not None:
            # The library quotes the URL of each request.
            text = str(bucket.fail).replace(URL, f"http://127.0.0.1:9/logs/{packed.path.replace('=', '%3D')}")
            raise type(bucket.fail)(text)
        if bucket.refused is not None and any(bucket.refused in line for line in lines_of(packed)):
            raise answer(400, "EntityTooLarge", "Your proposed upload is too large", f"http://x/{packed.path}")
        if packed.path in bucket.objects:
            raise answer(412, "PreconditionFailed", url=f"http://x/{packed.path}")
        bucket.objects[packed.path] = packed
        if bucket.lose:
            bucket.lose = False
            raise unanswered("ConnectionReset")

    def close(self) -> None:
        """Note it."""
        self.is_closed = True


def lines_of(packed: PackedObject) -> list[str]:
    """Return the lines in an object."""
    content = packed.content
    if packed.path.endswith(".parquet"):
        return [row["message"] for row in parquet.read_table(io.BytesIO(content)).to_pylist()]
    if packed.path.endswith(".zst"):
        content = zstandard.ZstdDecompressor().decompressobj().decompress(content)
    else:
        content = gzip.decompress(content)
    return content.decode().splitlines()


def messages_of(packed: PackedObject) -> list[dict[str, Any]]:
    """Return the messages in an object."""
    return [json.loads(line) for line in lines_of(packed)]


__all__ = ["PlayedBucket", "PlayedClient", "answer", "lines_of", "messages_of", "unanswered"]
