"""
What a page shows of the preview of a rule: what saving it would do, and how its files are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from webhookrx.console.api.principal import Permission
from webhookrx.console.api.problems import ApiFinding, ApiProblem
from webhookrx.console.pages.one_by_one import one_by_one
from webhookrx.console.pages.page import Page, PageAnswer, PageCall, PageRoute
from webhookrx.console.pages.rule_form import draft_in
from webhookrx.console.pages.rule_rows import NOT_YET, in_container
from webhookrx.diagnostics import ERROR
from webhookrx.management.volumes import volume_argument
from webhookrx.settings import KiB

LARGEST_FORM: Final = 512 * KiB
"""Bytes of a form with a rule, which is in it several times."""

_LARGE: Final = 8 * KiB
"""Characters of a form, or of a rule, from which on it is read apart from the reactor."""

SHOWN: Final = 10
"""Rows of each list in a preview."""

_WORDS: Final = {
    "present": "there",
    "missing": "missing",
    "unreadable": "can't be read",
    "not_pem": "not PEM, or encrypted",
    "does_not_fit": "doesn't fit",
    "chain_order": "chain in a wrong order",
    "expired": "expired, or not valid yet",
    "not_allowed": "not in a directory of keys",
    "unknown": "unknown",
}
_KINDS: Final = {"present": "good", "unknown": "quiet", "expired": "warn"}

T = TypeVar("T")


class FileStates(msgspec.Struct, frozen=True):
    """
    A file on the routers that match.

    @ivar states: what it is on how many routers, as kind of a badge and words.
    @ivar elsewhere: routers on which it is not there, with words.
    @ivar container: what a container needs to have it; empty for nothing.
    """

    path: str
    states: list[tuple[str, str]]
    elsewhere: list[tuple[str, str]]
    container: str


class ShownFiles(msgspec.Struct, frozen=True):
    """
    The files of a rule.

    @ivar closing: routers whose gate is open, and would close.
    @ivar unknown: some are unknown.
    """

    files: list[FileStates]
    closing: int
    unknown: bool


class Clash(msgspec.Struct, frozen=True):
    """
    A clash on one router or on several.

    @ivar sentence: on the first of them.
    @ivar rule: the other one, if it is with a rule.
    @ivar more: how many others.
    """

    sentence: str
    rule: str
    more: int


class PreviewView(msgspec.Struct, frozen=True):
    """
    A preview as the template takes it.

    @ivar preview: of the API; None where there is nothing to preview.
    @ivar key: tells what routers are asked about files from what others are asked; empty for nothing.
    @ivar closing: routers whose gate would close, as far as they have been asked.
    @ivar files: what they have said; None where it comes later.
    @ivar is_begun: what somebody has not written yet counts as an error.
    """

    preview: Any
    key: str = ""
    closing: int = 0
    files: ShownFiles | None = None
    problem: ApiProblem | None = None
    is_begun: bool = True

    @property
    def findings(self) -> tuple[ApiFinding, ...]:
        """What is wrong with the rule."""
        found: tuple[ApiFinding, ...] = () if self.preview is None else self.preview.findings
        return found

    @property
    def errors(self) -> int:
        """How much of it hinders saving."""
        return sum(each.severity == ERROR and (self.is_begun or each.code not in NOT_YET) for each in self.findings)

    @property
    def clashing(self) -> int:
        """Routers with a clash, among those that are listed."""
        return len({each.router for each in self.preview.clashes})

    @property
    def is_told(self) -> bool:
        """Whether it could be found out what saving would do, in spite of errors."""
        preview = self.preview
        if preview is None:
            return False
        has_errors = any(each.severity == ERROR for each in self.findings)
        return bool(not has_errors or preview.matched or preview.why_not)

    @property
    def counts(self) -> str:
        """The preview in a line."""
        preview = self.preview
        if preview is None:
            return ""
        errors = f"{self.errors} error{'s' * (self.errors != 1)}." if self.errors else ""
        if not self.is_told:
            return errors
        matched = f"{preview.matched:,} of {routers(preview.routers)} match" + ("es" * (preview.matched == 1))
        parts = [
            f"{count:,} {what}"
            for count, what in ((preview.added, "added"), (preview.changed, "changed"), (preview.removed, "removed"))
            if count
        ]
        changes = f"Connectors: {', '.join(parts)}." if parts else "No connector changes."
        clashes = f" {preview.clashing:,} clash{'es' * (preview.clashing != 1)}." if preview.clashing else ""
        return f"{matched}. {changes}{clashes} {errors}".rstrip()

    @property
    def save_words(self) -> str:
        """What the button says that saves the rule."""
        if not self.is_told:
            return "Save"
        removed = f", {self.preview.removed:,} removed" if self.preview.removed else ""
        return f"Save: {routers(self.preview.matched)}{removed}"

    @property
    def clashes(self) -> list[Clash]:
        """Clashes, those with one rule as one."""
        together: dict[tuple[str, str], list[Any]] = {}
        for each in self.preview.clashes:
            # Ports that something else has taken are told apart by router.
            what = each.other if each.kind == "rule" else f"{each.router} {each.other}"
            together.setdefault((each.kind, what), []).append(each)
        return [
            Clash(all_of[0].sentence, what if kind == "rule" else "", len(all_of) - 1)
            for (kind, what), all_of in together.items()
        ]

    @property
    def gate_sentence(self) -> str:
        """What the gates of routers come to; empty for nothing."""
        if self.preview is None:
            return ""
        closed, parts = len(self.preview.gates), []
        if self.closing:
            parts.append(f"the reload gate of {routers(self.closing)} would close")
        if closed:
            parts.append(f"the reload gate of {routers(closed)} is closed")
        sentence = " and ".join(parts)
        return f"{sentence[0].upper()}{sentence[1:]} until files are there" if sentence else ""


def routers(count: int) -> str:
    """Return a number of routers."""
    return "no router" if not count else "1 router" if count == 1 else f"{count:,} routers"


async def preview_of(
    call: PageCall, text: str, replaces: str, *, with_files: bool = False, is_begun: bool = True
) -> PreviewView:
    """
    Return what saving a rule would do.

    @param replaces: see L{webhookrx.console.routers.preview_routes.PreviewRequest}.
    @param with_files: ask the routers about its files, which takes some seconds.
    @param is_begun: see L{PreviewView}.
    """
    if not text.strip() or not call.may(Permission.EDIT):
        return PreviewView(None)
    body = {"yaml": text, "replaces": replaces}
    try:
        preview: Any = (await call.api("POST", "/rules:preview", body)).body
        files = await _files(call, body) if with_files and preview.paths else None
    except ApiProblem as problem:
        return PreviewView(None, problem=problem)
    key = _key(preview)
    if files is not None:
        return PreviewView(preview, key, files.closing, files, is_begun=is_begun)
    is_known = bool(key) and key == call.form.text("files_key")
    return PreviewView(preview, key, call.form.number("closing") if is_known else 0, is_begun=is_begun)


async def apart(call: PageCall, work: Callable[[], T]) -> T:
    """Read a form, a large one apart from the reactor."""
    return await by_size(sum(len(value) for _, value in call.form.pairs), work)


async def by_size(size: int, work: Callable[[], T]) -> T:
    """
    Return what some work on a rule returns, on a large one apart from the reactor.

    @param size: characters of the rule.
    """
    if size < _LARGE:
        return work()
    return await one_by_one(work)


async def show_files(call: PageCall) -> PageAnswer:
    """Show how the files of the rule in a form are on the routers that it matches."""
    draft = await apart(call, lambda: draft_in(call.form))
    view = await preview_of(call, draft.text, call.form.text("replaces"), with_files=True)
    is_read_only = call.console.settings.read_only_rules
    return Page("_rule_files_late.html", {"view": view, "is_read_only": is_read_only})


async def _files(call: PageCall, body: dict[str, str]) -> ShownFiles:
    found: Any = (await call.api("POST", "/rules:files", body)).body
    shown = []
    for path, counts in found.counts.items():
        states = [
            (_KINDS.get(state, "bad"), f"{_WORDS.get(state, state)} on {count:,}") for state, count in counts.items()
        ]
        elsewhere = [(each.router, _WORDS.get(each.state, each.state)) for each in found.files if each.path == path]
        argument = volume_argument(path)
        shown.append(FileStates(path, states, elsewhere[:SHOWN], in_container(argument) if argument else ""))
    return ShownFiles(shown, len(found.gates), any("unknown" in counts for counts in found.counts.values()))


def _key(preview: Any) -> str:
    if not preview.paths or not preview.matched:
        return ""
    asked = msgspec.json.encode((preview.paths, [each.router for each in preview.matching], preview.ask))
    return hashlib.sha256(asked).hexdigest()[:16]


ROUTES: Final = (PageRoute("POST", "/rules:files", Permission.EDIT, show_files, LARGEST_FORM),)
