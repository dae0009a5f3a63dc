"""Tests for L{webhookrx.senders.signatures.pinned_urls}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.senders.signatures.pinned_urls import SNS_CERTIFICATE, keys_of, pinned_host

_TENANT = "72f988bf-86f1-41af-91ab-2d7cd011db47"

HOSTILE = (
    "",
    "https://sns.us-east-1.amazonaws.com.evil.example/a.pem",
    "https://sns.us-east-1.amazonaws.com.evil/a.pem",
    "https://evil.example/sns.us-east-1.amazonaws.com/a.pem",
    "https://evil.example/?https://sns.us-east-1.amazonaws.com/a.pem",
    "https://evil.example#sns.us-east-1.amazonaws.com/a.pem",
    "http://sns.us-east-1.amazonaws.com/a.pem",
    "HTTPS://sns.us-east-1.amazonaws.com/a.pem",
    "ftp://sns.us-east-1.amazonaws.com/a.pem",
    "file:///etc/passwd.pem",
    "//sns.us-east-1.amazonaws.com/a.pem",
    "https://sns.us-east-1.amazonaws.com@evil.example/a.pem",
    "https://user@sns.us-east-1.amazonaws.com/a.pem",
    "https://user:pass@sns.us-east-1.amazonaws.com/a.pem",
    "https://sns.us-east-1.amazonaws.com:444/a.pem",
    "https://sns.us-east-1.amazonaws.com:80/a.pem",
    "https://sns.us-east-1.amazonaws.com:4433/a.pem",
    "https://sns.us-east-1.amazonaws.com:/a.pem",
    "https://[::1]/a.pem",
    "https://[fe80::1]:443/a.pem",
    "https://127.0.0.1/a.pem",
    "https://169.254.169.254/latest/meta-data/a.pem",
    "https://localhost/a.pem",
    "https://sns.us-east-1.amazonaws.com/../a.pem",
    "https://sns.us-east-1.amazonaws.com/a/b.pem",
    "https://sns.us-east-1.amazonaws.com/a%2f.pem",
    "https://sns.us-east-1.amazonaws.com/a.pem?x=1",
    "https://sns.us-east-1.amazonaws.com/a.pem#x",
    "https://sns.us-east-1.amazonaws.com/a.pem\n",
    "https://sns.us-east-1.amazonaws.com/a.pem\r\nHost: evil.example",
    "https://sns.us-east-1.amazonaws.com\\@evil.example/a.pem",
    "https://sns.us-east-1.amazonaws.com/a.PEM",
    "https://sns.us-east-1.amazonaws.com/",
    "https://sns.a.b.amazonaws.com/a.pem",
    "https://xsns.us-east-1.amazonaws.com/a.pem",
    "https://sns.us.amazonaws.org/a.pem",
    "https://sns..amazonaws.com/a.pem",
    "https://sns.us-east-1.amazonaws.com./a.pem",
    "https://sns.us-east-1.amazonaws.c\u043em/a.pem",
    "https://sns.us-east-1\uff0eamazonaws.com/a.pem",
    " https://sns.us-east-1.amazonaws.com/a.pem",
    "https://s3.amazonaws.com/a.pem",
    "https://sns.s3-us-west-2.amazonaws.com/a.pem",
    "https://sns.s3-accelerate.amazonaws.com/a.pem",
    "https://sns.s3-external-1.amazonaws.com/a.pem",
    "https://sns.s3-us-gov-west-1.amazonaws.com/?Action=ConfirmSubscription&Token=1",
    "https://api.paypal.com.evil.example/v1/notifications/certs/CERT-1",
    "https://evil.paypal.com/v1/notifications/certs/CERT-1",
    "https://www.paypal.com/v1/notifications/certs/CERT-1",
    "https://api.paypal.com/v1/notifications/certs/CERT-1/../../x",
    "https://api.paypal.com/v1/oauth2/token",
    "http://api.paypal.com/v1/notifications/certs/CERT-1",
    "https://www.googleapis.com/oauth2/v1/certs",
    "https://login.microsoftonline.com/common/discovery/v2.0/keys",
    f"https://login.microsoftonline.com/{_TENANT}/oauth2/authorize",
)
"""URLs that nothing is ever fetched from."""


class PinnedUrlTests(SynchronousTestCase):
    """What may be fetched."""

    def test_allowed(self) -> None:
        """The certificates, questions and key sets of the senders that are known may be fetched, at the usual port."""
        for host, path in (
            ("sns.us-east-1.amazonaws.com", "/SimpleNotificationService-0.pem"),
            ("sns.cn-north-1.amazonaws.com.cn", "/a.pem"),
            ("sns.us-gov-west-1.amazonaws.com", "/a.pem"),
            ("sns.ap-southeast-7.amazonaws.com", "/a.pem"),
            ("sns.eu-west-1.amazonaws.com", "/?Action=ConfirmSubscription&Token=1"),
            ("api.sandbox.paypal.com", "/v1/notifications/certs/CERT-360caa42-a5cafa77"),
            ("api.paypal.com", "/v1/notifications/certs/CERT-1"),
            ("www.googleapis.com", "/oauth2/v3/certs"),
            ("login.microsoftonline.com", f"/{_TENANT}/discovery/v2.0/keys"),
        ):
            self.assertEqual((host, path), pinned_host(f"https://{host}{path}"))
        self.assertEqual(
            ("sns.us-east-1.amazonaws.com", "/a.pem"), pinned_host("https://sns.us-east-1.amazonaws.com:443/a.pem")
        )

    def test_refused(self) -> None:
        """Another scheme, host, port, user, path or anything around it is refused."""
        for url in HOSTILE:
            self.assertIsNone(pinned_host(url), url)
            self.assertIsNone(SNS_CERTIFICATE.fullmatch(url), url)

    def test_issuers(self) -> None:
        """The keys of an issuer are where it publishes them; of one that is not known, nowhere."""
        microsoft = f"https://login.microsoftonline.com/{_TENANT}/discovery/v2.0/keys"
        for issuer, url in (
            ("https://accounts.google.com", "https://www.googleapis.com/oauth2/v3/certs"),
            (f"https://login.microsoftonline.com/{_TENANT}/v2.0", microsoft),
            (f"https://sts.windows.net/{_TENANT}/", microsoft),
            ("https://sts.windows.net/common/", ""),
            ("https://accounts.google.com.evil.example", ""),
            ("", ""),
        ):
            self.assertEqual(url, keys_of(issuer))
            if url:
                self.assertIsNotNone(pinned_host(url))
