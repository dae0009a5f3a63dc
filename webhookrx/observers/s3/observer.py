"""
C{s3:URL}: puts messages into objects of S3, or of a service like it, each batch once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Final, Protocol, TypeAlias, cast

from zope.interface import implementer

from webhookrx.errors import Unavailable
from webhookrx.interfaces import LARGEST_BATCH, MOST_MESSAGES, IStoreObserver, Prepared, Wants
from webhookrx.observers.batch_limits import BatchLimits
from webhookrx.observers.item_outcomes import RefusedTogether, store_by_halves
from webhookrx.observers.packages import package_for
from webhookrx.observers.retrying import Retries
from webhookrx.observers.s3.answers import Fate, read_failure
from webhookrx.observers.s3.client import ObstoreClient
from webhookrx.observers.s3.objects import PackedObject, object_format
from webhookrx.observers.s3.options import Credentials, S3Target, read_credentials, read_s3
from webhookrx.store_counts import StoreCounts

#: A batch as a spool gathers it is one object.
_LIMITS: Final = BatchLimits(MOST_MESSAGES, LARGEST_BATCH)


class PutClient(Protocol):
    """See L{ObstoreClient}."""

    def put(self, packed: PackedObject, steps: Iterator[float]) -> None: ...

    def close(self) -> None: ...


#: Makes a client, with the credentials of a file if there is one; raises L{webhookrx.errors.ConfigError}.
MakePutClient: TypeAlias = Callable[[S3Target, "Credentials | None"], PutClient]


@implementer(IStoreObserver)
class S3Observer:
    """
    Puts each batch as one object. A batch that comes again is the same object, which is put only where there is none.

    Its promise is that of S3: an object whose C{PUT} is answered is durable.
    """

    promise = "durable"
    promise_reason = ""
    #: It is always behind a spool, which keeps values.
    takes_lines = False

    def __init__(
        self, spec: str, target: S3Target, make_client: MakePutClient = ObstoreClient, retries: Retries | None = None
    ) -> None:
        self.spec = spec
        self.wants = Wants(None, target.size, target.age)
        self.counts = StoreCounts()
        self._format = object_format(target)
        self.prepare = self._format.prepare
        self._target = target
        self._make_client = make_client
        self._retries = Retries(target.retry_for) if retries is None else retries
        self._client: PutClient | None = None

    def check(self) -> None:
        """
        Read the files, without opening a connection.

        @raise webhookrx.errors.ConfigError: a file or an option is wrong.
        """
        self._made_client().close()

    def open(self) -> None:
        """
        Read the files. The first batch connects: the service may be away at the start.

        @raise webhookrx.errors.ConfigError: a file is missing or wrong.
        """
        client = self._made_client()
        self._retries.resume()
        self._use(client)

    def store(self, batch: Sequence[Prepared]) -> list[Exception | None] | None:
        """
        Put a batch as one object; as several, where it is larger than any may be.

        @return: None, or for each message None, L{Rejected}, or L{Unavailable} from the first that is not stored on.
        @raise Unavailable: no message was stored.
        """
        items = cast("Sequence[bytes]", batch)
        give_up_at = self._retries.begin()

        def send(begin: int, end: int) -> None:
            packed = self._format.make(items[begin:end], self._check_time)
            if self._retries.call(partial(self._try, packed), give_up_at):
                self.counts.known(end - begin)

        return store_by_halves(_LIMITS.cut([len(item) for item in items]), len(items), send)

    def hurry(self) -> None:
        """End a pause between two tries, and shorten this request and the next ones."""
        self._retries.hurry()

    def reopen(self) -> None:
        """
        Read the files again, and connect anew.

        @raise webhookrx.errors.ConfigError: a file is wrong; the credentials read before stay in use.
        """
        self._use(self._made_client())
        self._retries.forget_pause()

    def close(self) -> None:
        """Release the client."""
        self._use(None)

    def _check_time(self) -> None:
        # A spool offers the same again; packing 64 MiB may take longer than there is.
        if self._retries.stopping.is_set():
            raise Unavailable("the receiver stops")

    def _try(self, packed: PackedObject) -> bool:
        """
        Put an object, and return whether it was there already.

        @raise Unavailable: it may be tried again.
        @raise RefusedTogether: the service takes no object as large as that.
        """
        client = self._client
        if client is None:
            raise Unavailable("it is closed")
        try:
            client.put(packed, self._retries.steps(self._target.timeout))
        except Exception as error:
            failure = read_failure(error, packed.path)
        else:
            return False
        # Without the error as its cause, which quotes the answer.
        if failure.fate is Fate.LATER:
            raise Unavailable(failure.text)
        if failure.fate is Fate.TOO_LARGE:
            raise RefusedTogether(failure.text)
        return True

    def _made_client(self) -> PutClient:
        path = self._target.credentials_file
        return self._make_client(self._target, None if path is None else read_credentials(path))

    def _use(self, client: PutClient | None) -> None:
        old, self._client = self._client, client
        if old is not None:
            old.close()


def build_s3(spec: str, args: Sequence[str], options: Mapping[str, str], ack: str) -> S3Observer:
    """
    Make the observer of C{s3:s3://BUCKET/PREFIX[:key=value…]}; see L{webhookrx.observers.s3.options}.

    @raise webhookrx.errors.ConfigError: an argument, an option or a file is wrong, or a package is missing.
    """
    target = read_s3(args, options)
    with package_for("s3", "pyarrow>=26", "format=parquet") if target.format == "parquet" else nullcontext():
        observer = S3Observer(spec, target)
    observer.check()
    return observer
