"""
Which groups serve the key exchange. pyOpenSSL has no method for it, but its binding to OpenSSL has the call: the
private names are used here and in L{webhookrx.transport.openssl_calls}, and nowhere else.
"""

from __future__ import annotations

from OpenSSL import SSL
from OpenSSL._util import lib

# Those of Mozilla's "intermediate" profile, and before them its post-quantum hybrid, which OpenSSL has from 3.5 on.
_CLASSIC = b"X25519:P-256:P-384"
_LISTS = (b"X25519MLKEM768:" + _CLASSIC, _CLASSIC)


def limit_groups(context: SSL.Context) -> None:
    """
    Leave out the groups that OpenSSL offers besides: large finite fields and curves, which cost the server much more
    time than the client that asks for them.

    Without the call OpenSSL's own groups stay, which are safe as well.
    """
    set_groups = getattr(lib, "SSL_CTX_set1_curves_list", None)
    if set_groups is None:
        return
    for groups in _LISTS:
        if set_groups(context._context, groups):
            return
        # What one list left in OpenSSL's error queue would be taken for the reason of a later failure.
        lib.ERR_clear_error()
