"""The client of the s3 observer, without a request."""

from __future__ import annotations

import os
from typing import Any

import obstore
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.errors import ConfigError
from webhookrx.observers.s3.answers import read_failure
from webhookrx.observers.s3.client import NoETag, ObstoreClient, _client_options, _config
from webhookrx.observers.s3.objects import PackedObject
from webhookrx.observers.s3.options import Credentials, read_s3

URL = "s3://logs/in"
SECRET = "s3-5ecret"


class ClientTests(SynchronousTestCase):
    """What obstore is told."""

    def test_config(self) -> None:
        """What would weaken a request is said whatever the environment says; credentials only from a file."""
        credentials = Credentials("K", SECRET, "T")

        plain = _config(read_s3([URL], {}), None)
        full = _config(read_s3([URL], {"endpoint": "https://m:9", "region": "r"}), credentials)

        safe = {
            "conditional_put": "etag",
            "skip_signature": False,
            "unsigned_payload": False,
            "virtual_hosted_style_request": False,
        }
        self.assertEqual(safe, plain)
        self.assertEqual(
            {
                **safe,
                "endpoint": "https://m:9",
                "region": "r",
                "access_key_id": "K",
                "secret_access_key": SECRET,
                "session_token": "T",
            },
            full,
        )

    def test_options(self) -> None:
        """Certificates are checked, and plain HTTP is only for an endpoint that says so."""
        ca_file = os.path.abspath(self.mktemp())
        with open(ca_file, "wb") as file:
            file.write(b"PEM")
        away = _client_options(read_s3([URL], {"ca_file": ca_file, "timeout": "3s"}))
        here = _client_options(read_s3([URL], {"endpoint": "http://127.0.0.1:9"}))

        self.assertEqual((False, False), (away["allow_http"], away["allow_invalid_certificates"]))
        self.assertEqual(
            (b"PEM", 3.0, 3.0),
            (
                away["root_certificate"],
                away["timeout"].total_seconds(),
                away["connect_timeout"].total_seconds(),
            ),
        )
        self.assertEqual((True, False), (here["allow_http"], here["allow_invalid_certificates"]))
        self.assertNotIn("root_certificate", here)

    def test_environment(self) -> None:
        """An environment that allows anything changes nothing, and one that is nonsense is a mistake."""
        for name, value in (("AWS_SKIP_SIGNATURE", "true"), ("AWS_CONDITIONAL_PUT", "disabled")):
            os.environ[name] = value
            self.addCleanup(os.environ.pop, name)
        store = ObstoreClient(read_s3([URL], {}), Credentials("K", SECRET, None))._store

        self.assertEqual("etag", store.config["conditional_put"])
        self.assertIn(store.config["skip_signature"], (False, "false"))

    def test_wrong(self) -> None:
        """What makes no client is a mistake that quotes nothing."""
        os.environ["AWS_METADATA_ENDPOINT"] = "x"
        self.addCleanup(os.environ.pop, "AWS_METADATA_ENDPOINT")
        ca_file = os.path.abspath(self.mktemp())
        with open(ca_file, "wb") as file:
            file.write(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
        credentials = Credentials("K", SECRET, None)

        error = self.assertRaises(ConfigError, ObstoreClient, read_s3([URL], {"ca_file": ca_file}), credentials)
        self.assertNotIn(SECRET, str(error))
        self.assertIn("make no client", str(error))
        error = self.assertRaises(ConfigError, ObstoreClient, read_s3([URL], {"ca_file": "/nosuch"}), credentials)
        self.assertIn("ca_file", str(error))

    def test_close(self) -> None:
        """One that was never used, and one that is closed again, can be closed."""
        client = ObstoreClient(read_s3([URL], {}), None)
        client.close()
        client.close()

    def test_empty_etag(self) -> None:
        """An answer whose ETag is empty is not that of S3, whatever its status says."""
        packed = PackedObject("x", "text/plain", b"x")
        for e_tag in (None, "", '""', " "):
            with self.subTest(repr(e_tag)):
                self._answer(e_tag)
                client = ObstoreClient(read_s3([URL], {}), None)
                self.assertRaises(NoETag, client.put, packed, iter([1.0] * 9))
                self.assertEqual("the answer has no ETag", read_failure(NoETag(), "x").text)
                client.close()
        self._answer('"abc"')
        client = ObstoreClient(read_s3([URL], {}), None)
        client.put(packed, iter([1.0] * 9))
        client.close()

    def _answer(self, e_tag: str | None) -> None:
        async def put_async(*_: Any, **__: Any) -> dict[str, str | None]:
            return {"e_tag": e_tag, "version": None}

        self.patch(obstore, "put_async", put_async)
