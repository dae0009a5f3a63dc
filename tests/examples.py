"""
How many examples Hypothesis makes: 50, the same in every run; where tests may take long, 300 others each time; or as
many as C{WEBHOOKRX_EXAMPLES} says, others each time.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

from tests import LONG

# No deadlines: on a busy machine they fail tests that hold.
settings.register_profile("short", max_examples=50, deadline=None, derandomize=True)
settings.register_profile("long", max_examples=300, deadline=None)
if "WEBHOOKRX_EXAMPLES" in os.environ:
    # Whoever asks for very many has the time.
    settings.register_profile(
        "chosen",
        max_examples=int(os.environ["WEBHOOKRX_EXAMPLES"]),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("chosen")
else:
    settings.load_profile("long" if LONG else "short")
