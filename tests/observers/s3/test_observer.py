"""The s3 observer, with a service that is played."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from obstore.exceptions import AlreadyExistsError
from twisted.trial.unittest import SynchronousTestCase

from tests.contracts.store_contract import Record, Row, StoreContract
from tests.observers.s3.played_s3 import PlayedBucket, answer, messages_of, unanswered
from webhookrx.observers.retrying import Retries
from webhookrx.observers.s3.observer import S3Observer
from webhookrx.observers.s3.options import read_s3

URL = "s3://logs/in"


class PlayedCase(StoreContract):
    """Plays a bucket."""

    rows = (
        Row("200", None, "stored"),
        Row("412 PreconditionFailed: it is there", answer(412, "PreconditionFailed"), "stored"),
        Row("304: it is there, say some services", answer(304), "stored"),
        Row("400 EntityTooLarge", answer(400, "EntityTooLarge"), "rejected"),
        Row("413", answer(413), "rejected"),
        Row("409 ConditionalRequestConflict", answer(409, "ConditionalRequestConflict"), "later"),
        Row("409 OperationAborted", answer(409, "OperationAborted"), "later"),
        Row("400 InvalidRequest", answer(400, "InvalidRequest"), "later"),
        Row("400 RequestTimeout", answer(400, "RequestTimeout"), "later"),
        Row("400 ExpiredToken", answer(400, "ExpiredToken"), "later"),
        Row("400 XAmzContentSHA256Mismatch", answer(400, "XAmzContentSHA256Mismatch"), "later"),
        Row("401", answer(401), "later"),
        Row("403 AccessDenied", answer(403, "AccessDenied"), "later"),
        Row("403 SignatureDoesNotMatch", answer(403, "SignatureDoesNotMatch"), "later"),
        Row("403 RequestTimeTooSkewed", answer(403, "RequestTimeTooSkewed"), "later"),
        Row("404 NoSuchBucket", answer(404, "NoSuchBucket"), "later"),
        Row("301 PermanentRedirect", answer(301, "PermanentRedirect"), "later"),
        Row("405", answer(405), "later"),
        Row("501 NotImplemented", answer(501, "NotImplemented"), "later"),
        Row("500 InternalError", answer(500, "InternalError"), "later"),
        Row("503 SlowDown", answer(503, "SlowDown"), "later"),
        Row("503 of a proxy", answer(503, "", "<html>" + "x" * 3000), "later"),
        Row("502", answer(502), "later"),
        Row("504", answer(504), "later"),
        Row("507", answer(507), "later"),
        Row("connection refused", unanswered("Connection refused"), "later"),
        Row("certificate", unanswered("invalid peer certificate: UnknownIssuer"), "later"),
        Row("broken pipe", unanswered("Broken pipe"), "later"),
    )
    nonsense = (
        unanswered("Unable to extract metadata from headers: ETag Header missing from response"),
        AlreadyExistsError("there is such an object, says nobody"),
        answer(412).__class__("412 Precondition Failed"),
        ValueError("status code: 412"),
        RuntimeError(),
        answer(199),
        answer(999),
        # Answers of whoever is asked for credentials.
        answer(412, url="http://169.254.169.254/latest/api/token"),
        answer(413, url="http://169.254.169.254/latest/api/token"),
        answer(400, "EntityTooLarge", url="https://sts.amazonaws.com/"),
        *(answer(status, "EntityTooLarge") for status in (403, 404, 409, 429, 500, 503)),
    )
    options: Mapping[str, str] = {}

    def setUp(self) -> None:
        super().setUp()
        self.bucket = PlayedBucket(self.time.sleep)

    def make_observer(self) -> S3Observer:
        return self._make({})

    def _make(self, more: Mapping[str, str]) -> S3Observer:
        target = read_s3([URL], {**self.options, **more})
        retries = Retries(target.retry_for, self.time, lambda: 1.0, self.time)
        return S3Observer("s3:played", target, self.bucket.connect, retries)

    def stored_records(self) -> list[Record]:
        return [
            Record(message["RCPTID"], message["MESSAGE"])
            for packed in self.bucket.objects.values()
            for message in messages_of(packed)
        ]

    def answer_with(self, answer: Any) -> None:
        self.bucket.fail = answer

    def break_observer(self) -> None:
        self.bucket.fail = unanswered("Connection refused")

    def mend(self) -> None:
        bucket = self.bucket
        bucket.fail = bucket.refused = None
        bucket.lose = bucket.drop = bucket.is_stalled = False

    def lose_answer(self) -> None:
        self.bucket.lose = True

    def store_half(self) -> None:
        # An object is put whole, or not at all.
        self.bucket.drop = True

    def stall(self) -> None:
        self.bucket.is_stalled = True

    def refuse(self, text: str) -> None:
        self.bucket.refused = text

    def make_secret_observer(self, path: str) -> S3Observer:
        return self._make({"credentials_file": path})

    def write_secret(self, path: str, secret: str) -> None:
        with open(path, "w") as file:
            file.write(f"[default]\naws_access_key_id = {secret}\naws_secret_access_key = {secret}\n")
            file.write(f"aws_session_token = {secret}\n")
        os.chmod(path, 0o600)

    def shown_secret(self) -> str:
        shown = self.bucket.credentials
        assert shown.key_id == shown.secret == shown.token
        return str(shown.secret)

    def quote_secret(self) -> None:
        self.bucket.fail = answer(403, "AccessDenied", f"the token {self.shown_secret()} is wrong")


class ContractTests(PlayedCase, SynchronousTestCase):
    """The contract of stores, as NDJSON with zstd."""


class GzipContractTests(PlayedCase, SynchronousTestCase):
    """The same with gzip."""

    options = {"compress": "gzip"}


class ParquetContractTests(PlayedCase, SynchronousTestCase):
    """The same as parquet."""

    options = {"format": "parquet"}


class ObserverTests(PlayedCase, SynchronousTestCase):
    """What this observer does beside the contract."""

    def test_wants(self) -> None:
        """It asks its spool for batches of the size and age of its objects."""
        self.assertEqual((None, 1024, 60.0), tuple(self._make({"size": "1KiB", "age": "1m"}).wants))

    def test_known(self) -> None:
        """Messages of an object that is there already are counted as known."""
        observer = self.opened()
        self.lose_answer()
        self.assertEqual([], self.deliver(observer, "one", "two"))

        self.assertEqual(2, observer.counts.take().known)
        self.assertEqual(1, len(self.bucket.objects))

    def test_conflict(self) -> None:
        """
        409 is sent again: obstore raises the same for it as for an object that is there, but nothing is stored
        (apache/arrow-rs-object-store, pull request 852).
        """
        observer = self.opened()
        self.bucket.fail = answer(409, "ConditionalRequestConflict")
        self.time.at(0.1, self.mend)

        self.assertIsNone(self.store(observer, "one"))

        self.assert_stored("one")

    def test_broken_pipe(self) -> None:
        """
        An upload whose connection breaks is sent again, however often: the batch is neither dropped nor set aside
        (fluent/fluent-bit, issues 7699 and 12377).
        """
        observer = self.opened()
        self.bucket.fail = unanswered("Broken pipe")
        for _ in range(50):
            self.assertEqual(["later"] * 2, self.fates(observer, "one", "two"))
        self.mended()

        self.assertEqual([], self.deliver(observer, "one", "two"))

        self.assert_stored("one", "two")

    def test_same_object_in_all_tries(self) -> None:
        """Each try of a batch puts the same bytes under the same name, also by another process."""
        first, second = self.opened(), self.opened()
        self.break_observer()
        self.fates(first, "one", "two")
        self.fates(second, "one", "two")

        self.assertLess(2, len(self.bucket.requests))
        self.assertEqual(1, len({*self.bucket.requests}))

    def test_no_credentials(self) -> None:
        """Errors of whoever is asked for credentials are told from those of the service."""
        elsewhere = "http://169.254.169.254/latest/api/token"
        for error in (answer(403, url=elsewhere), unanswered("TimedOut", elsewhere)):
            observer = self.opened()
            self.bucket.fail = error
            outcome = self.outcomes(observer, "one")[0]
            self.assertEqual("there are no credentials; look at credentials_file=", str(outcome))

    def test_largest(self) -> None:
        """A batch of more than 64 MiB becomes several objects, in order."""
        observer = self._make({"compress": "gzip"})
        observer.open()
        texts = [str(number) + "x" * 8 * 1024**2 for number in range(9)]

        self.assertIsNone(self.store(observer, *texts))

        self.assertEqual(2, len(self.bucket.objects))
        self.assertEqual([text[0] for text in texts], [text[0] for text in self.stored_texts()])

    def test_stop_while_packing(self) -> None:
        """Told to hurry, it puts nothing more that is still to be packed."""
        observer = self.opened()
        observer.hurry()

        self.assertEqual(["later"], self.fates(observer, "one"))
        self.assertEqual([], self.bucket.requests)

    def test_closed(self) -> None:
        """A closed one stores nothing, and has closed its client."""
        observer = self.opened()
        observer.close()

        self.assertEqual(["later"], self.fates(observer, "one"))
