"""
Puts objects by obstore, in steps: nothing that hangs holds it for longer than is said.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import obstore
from obstore.store import S3Store

from webhookrx.config.files import read_file
from webhookrx.errors import ConfigError

if TYPE_CHECKING:
    from webhookrx.observers.s3.objects import PackedObject
    from webhookrx.observers.s3.options import Credentials, S3Target

_CONNECT_TIMEOUT: Final = 5.0


class NoAnswerInTime(Exception):
    """The request was given up; whether the object was put is unknown."""

    def __init__(self) -> None:
        super().__init__("timed out")


class NoETag(Exception):
    """The answer has none, or an empty one: it is not that of S3."""

    def __init__(self) -> None:
        super().__init__("ETag Header missing")


class ObstoreClient:
    """
    Puts objects into one bucket.

    @param credentials: None for those that obstore finds: environment, web identity, container, instance.
    @raise ConfigError: what is configured makes no client; nothing of it is quoted.
    """

    def __init__(self, target: S3Target, credentials: Credentials | None) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        try:
            self._store = S3Store(
                target.bucket,
                config=_config(target, credentials),
                client_options=_client_options(target),
                # The observer tries again itself, so that it can stop. One try signs what it sends anew.
                retry_config={"max_retries": 0, "retry_timeout": timedelta(seconds=target.timeout)},
            )
        except ConfigError:
            raise
        except Exception as error:
            raise ConfigError(
                f"observer 's3': its options, or AWS_* in the environment, make no client ({type(error).__name__})"
            ) from None

    def put(self, packed: PackedObject, steps: Iterator[float]) -> None:
        """
        Put an object, if there is none of this name.

        @raise NoAnswerInTime: C{steps} have ended.
        @raise NoETag: what answers is not S3.
        @raise Exception: what obstore raises; see L{webhookrx.observers.s3.answers.read_failure}.
        """
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        self._loop.run_until_complete(self._put(packed, steps))

    def close(self) -> None:
        """Release everything."""
        if self._loop is not None:
            self._loop.close()
            self._loop = None

    async def _put(self, packed: PackedObject, steps: Iterator[float]) -> None:
        request = asyncio.ensure_future(
            obstore.put_async(
                self._store,
                packed.path,
                packed.content,
                attributes={"Content-Type": packed.content_type},
                mode="create",
                # One request: parts of an upload that is given up would stay in the bucket, and cost money.
                use_multipart=False,
            )
        )
        try:
            for step in steps:
                done, _ = await asyncio.wait({request}, timeout=step)
                if done:
                    if not (request.result()["e_tag"] or "").strip('" '):
                        raise NoETag
                    return
            raise NoAnswerInTime
        finally:
            # This ends the request.
            request.cancel()


def _config(target: S3Target, credentials: Credentials | None) -> Any:
    # What is said here wins over the environment.
    config: dict[str, Any] = {
        "conditional_put": "etag",
        "skip_signature": False,
        "unsigned_payload": False,
        "virtual_hosted_style_request": False,
    }
    if target.endpoint is not None:
        config["endpoint"] = target.endpoint
    if target.region is not None:
        config["region"] = target.region
    if credentials is not None:
        config["access_key_id"] = credentials.key_id
        config["secret_access_key"] = credentials.secret
        if credentials.token is not None:
            config["session_token"] = credentials.token
    return config


def _client_options(target: S3Target) -> Any:
    options: dict[str, Any] = {
        "allow_http": target.is_plain,
        "allow_invalid_certificates": False,
        "timeout": timedelta(seconds=target.timeout),
        "connect_timeout": timedelta(seconds=min(target.timeout, _CONNECT_TIMEOUT)),
        "user_agent": "webhookrx",
    }
    if target.ca_file is not None:
        try:
            options["root_certificate"], _ = read_file(target.ca_file)
        except ConfigError as error:
            raise ConfigError(f"observer 's3': ca_file: {error.problem}") from None
    return options
