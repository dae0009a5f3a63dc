"""
Tests of webhookrx; they mirror the package.
"""

import importlib.util
import os
import signal
from typing import Final

LONG: Final = bool(os.environ.get("WEBHOOKRX_LONG"))
"""Whether the tests may take as long as they need: C{WEBHOOKRX_LONG=1} in the environment."""

# A shell that runs the tests in its background has them ignore SIGINT, and so would all that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Programs here that benchmarks start need no more than the package itself.
if importlib.util.find_spec("hypothesis"):
    import tests.examples  # noqa: F401
