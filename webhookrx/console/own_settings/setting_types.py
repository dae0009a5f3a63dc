"""
What masks and retention may be: their types, defaults and bounds.
"""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta

from webhookrx.console.api.problems import INVALID, ApiFinding, ApiProblem
from webhookrx.management.rollups import ROLLUP_STEPS, RollupStep

_HOUR: Final = 3600
_DAY: Final = 86_400

LEAST_AUDITED: Final = 10_000
MOST_AUDITED: Final = 1_000_000

MOST_MASKS: Final = 256
LONGEST_MASK: Final = 128


class KeptFor(NamedTuple):
    """Bounds of a time for which sums are kept, in seconds."""

    least: int
    most: int


#: By the name of a step. With these, twenty thousand busy connectors take 1.5 to 4.5 GB a step at most.
BOUNDS: Final = {
    "1m": KeptFor(_HOUR, _DAY),
    "10m": KeptFor(_DAY, 14 * _DAY),
    "1h": KeptFor(7 * _DAY, 180 * _DAY),
    "1d": KeptFor(90 * _DAY, 3650 * _DAY),
}


class MaskSetting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """
    @ivar names: of members, at any depth and in any case, whose values no tap of any router shows; besides those that
        routers mask anyway.
    """

    names: Annotated[tuple[Annotated[str, Meta(max_length=LONGEST_MASK)], ...], Meta(max_length=MOST_MASKS)] = ()


_STEPS: Final = {step.name: step.kept for step in ROLLUP_STEPS}


class RetentionSetting(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename={"minute": "1m", "ten_minutes": "10m", "hour": "1h", "day": "1d"},
):
    """
    @ivar minute: seconds for which sums by the minute are kept; the others likewise.
    @ivar audit: entries of the audit that are kept.
    """

    minute: int = _STEPS["1m"]
    ten_minutes: int = _STEPS["10m"]
    hour: int = _STEPS["1h"]
    day: int = _STEPS["1d"]
    audit: int = 100_000

    @property
    def steps(self) -> tuple[RollupStep, ...]:
        """The steps of sums, each kept as long as this says."""
        kept = (self.minute, self.ten_minutes, self.hour, self.day)
        return tuple(step._replace(kept=seconds) for step, seconds in zip(ROLLUP_STEPS, kept, strict=True))


def checked_masks(asked: MaskSetting) -> MaskSetting:
    """
    Return masks without spaces around names, and without names that are there twice.

    @raise ApiProblem: a name can't be one.
    """
    names: dict[str, str] = {}
    findings = []
    for index, name in enumerate(asked.names):
        plain = name.strip()
        if not plain or not plain.isprintable():
            findings.append(
                _finding(f"Name {index + 1} is empty, or has a character that can't be seen.", "names", index)
            )
        names.setdefault(plain.lower(), plain)
    _refuse(findings)
    return MaskSetting(tuple(names.values()))


def check_retention(asked: RetentionSetting) -> None:
    """
    @raise ApiProblem: something is kept too short or too long, or sums of a step longer than those of the next.
    """
    findings = []
    steps = asked.steps
    for finer, step in zip((None, *steps), steps, strict=False):
        least, most = BOUNDS[step.name]
        if not least <= step.kept <= most:
            findings.append(_finding(f"Sums by {step.name} are kept for {least:,} to {most:,} seconds.", step.name))
        elif finer is not None and step.kept < finer.kept <= BOUNDS[finer.name].most:
            findings.append(_finding(f"They are kept for less time than those by {finer.name}.", step.name))
    if not LEAST_AUDITED <= asked.audit <= MOST_AUDITED:
        findings.append(_finding(f"{LEAST_AUDITED:,} to {MOST_AUDITED:,} entries are kept.", "audit"))
    _refuse(findings)


def _finding(sentence: str, *path: str | int) -> ApiFinding:
    return ApiFinding("bad-value", "error", sentence, path)


def _refuse(findings: list[ApiFinding]) -> None:
    if findings:
        raise ApiProblem(INVALID, findings=findings)
