"""How many examples Hypothesis makes: 50, the same in every run; where tests may take long, 300 others each time."""

from __future__ import annotations

from hypothesis import settings

from tests import LONG

# No deadlines: on a busy machine they fail tests that hold.
settings.register_profile("short", max_examples=50, deadline=None, derandomize=True)
settings.register_profile("long", max_examples=300, deadline=None)
settings.load_profile("long" if LONG else "short")
