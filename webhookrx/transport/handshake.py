"""
Why a TLS handshake failed, in words that do not depend on the version of OpenSSL and hold no byte of the peer.
"""

from __future__ import annotations

import re

from OpenSSL.SSL import Error, SysCallError, X509VerificationCodes, ZeroReturnError
from twisted.python.failure import Failure

_ALERT = re.compile(r"(?:sslv3|tlsv1|tlsv1\.3|tlsv13|ssl/tls) alert (?P<alert>.+)")

#: OpenSSL's reason, and ours where it says more to an operator.
_REASONS = {
    "http request": "plain HTTP on a TLS port",
    "https proxy request": "plain HTTP on a TLS port",
    "wrong version number": "not TLS, or a wrong version",
    "unsupported protocol": "wrong version: TLS 1.2 or 1.3 is needed",
    "version too low": "wrong version: TLS 1.2 or 1.3 is needed",
    "unknown protocol": "wrong version: TLS 1.2 or 1.3 is needed",
    "no suitable signature algorithm": "no shared signature algorithm",
    "no suitable key share": "no shared key exchange group",
}

#: X509_V_ERR_*, and its meaning for a client certificate.
_VERIFY_ERRORS = {
    X509VerificationCodes.ERR_UNABLE_TO_GET_ISSUER_CERT: "issuer certificate not found",
    X509VerificationCodes.ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "unknown CA",
    X509VerificationCodes.ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE: "unknown CA",
    X509VerificationCodes.ERR_SELF_SIGNED_CERT_IN_CHAIN: "unknown CA",
    X509VerificationCodes.ERR_DEPTH_ZERO_SELF_SIGNED_CERT: "self-signed certificate",
    X509VerificationCodes.ERR_CERT_HAS_EXPIRED: "certificate has expired",
    X509VerificationCodes.ERR_CERT_NOT_YET_VALID: "certificate is not yet valid",
    X509VerificationCodes.ERR_CERT_SIGNATURE_FAILURE: "bad signature",
    X509VerificationCodes.ERR_INVALID_PURPOSE: "certificate is not for clients",
    X509VerificationCodes.ERR_INVALID_CA: "issuer is no CA",
    X509VerificationCodes.ERR_PATH_LENGTH_EXCEEDED: "chain is longer than its CA allows",
    X509VerificationCodes.ERR_CERT_CHAIN_TOO_LONG: "chain is too long",
    X509VerificationCodes.ERR_CERT_REVOKED: "certificate is revoked",
}


class ClientCertificateRefused(Error):
    """
    A client certificate did not pass verification.

    It is an OpenSSL error with arguments of the same shape, since Twisted passes only those on to the protocol above.

    @param code: an X509_V_ERR_* number.
    """

    def __init__(self, code: int) -> None:
        because = _VERIFY_ERRORS.get(code, f"verification error {code}")
        super().__init__([("SSL routines", "", f"certificate verify failed: {because}")])


def describe_failure(reason: Failure) -> str | None:
    """
    Return in a short sentence why a TLS connection was lost.

    @param reason: the argument of C{connectionLost}.
    @return: None when either side just closed the connection.
    """
    error = reason.value
    # OpenSSL's error queue is empty at the end of the stream.
    if not isinstance(error, Error) or isinstance(error, (SysCallError, ZeroReturnError)) or not error.args[0]:
        return None
    text: str = error.args[0][-1][2]
    alert = _ALERT.fullmatch(text)
    if alert is not None:
        return f"alert {alert['alert']}"
    return _REASONS.get(text, text or "unknown TLS error")
