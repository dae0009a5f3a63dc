"""How many examples Hypothesis makes: 50, the same in every run; with C{WEBHOOKRX_LONG=1} 300, other ones each time."""

from __future__ import annotations

import os

from hypothesis import settings

# No deadlines: on a busy machine they fail tests that hold.
settings.register_profile("short", max_examples=50, deadline=None, derandomize=True)
settings.register_profile("long", max_examples=300, deadline=None)
settings.load_profile("long" if os.environ.get("WEBHOOKRX_LONG") else "short")
