"""
Tests for L{webhookrx.console.rules.rulebook}: the rulebook against a model of it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Coroutine
from typing import Any, NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from tests.console.direct_store import DirectStore
from webhookrx.console.api.problems import CONFLICT, INVALID, NOT_FOUND, STALE, ApiProblem, ProblemKind
from webhookrx.console.rules.rulebook import PushRequest, Rulebook
from webhookrx.console.rules.saved import SavedRules
from webhookrx.console.store.history import Author, read_history
from webhookrx.management.rule_changes import PushOutcome
from webhookrx.management.rule_documents import document_yaml, rules_yaml

MARA = Author("mara", "api")
NAMES = st.sampled_from(["a", "b", "c"])
PORTS = st.sampled_from([8080, 8081, 8082, 8083])
COMMENTS = st.sampled_from([None, "# why\n", "# why not\n"])


class Content(NamedTuple):
    """
    What a rule of the model says.

    @ivar comment: above its text; None when there is no text.
    """

    port: int
    comment: str | None
    manager: str


class Kept(NamedTuple):
    """A rule of the model as it is kept."""

    generation: int
    content: Content


Rules = dict[str, Kept]


def document(name: str, port: int) -> dict[str, Any]:
    """Return a rule, which matches everywhere, so that two of one port clash."""
    return {"name": name, "protocol": "HTTP", "port": port}


class RulebookModel(RuleBasedStateMachine):
    """
    Saves, deletes, pushes and rollbacks by people who have read the newest rules or older ones, and restarts.

    The model has no rulebook's parts: rules by name, the generation that each name has come to, and all rules as they
    were at each revision.
    """

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.mkdtemp()
        self.now: Rules = {}
        self.newest: dict[str, int] = {}
        self.states: list[Rules] = [{}]
        self.entries: dict[tuple[str, int], Content | None] = {}
        self.told: list[SavedRules] = []
        self.open()

    def open(self) -> None:
        """Open the store, and read all of it."""
        self.store = DirectStore(os.path.join(self.directory, "console.sqlite"))
        self.book = Rulebook(self.store)
        self.book.changed.append(self.told.append)
        self.result(self.book.start())
        self.told.clear()

    def teardown(self) -> None:
        """Remove the files."""
        self.store.close()
        shutil.rmtree(self.directory)

    @staticmethod
    def result(work: Coroutine[Any, Any, Any]) -> Any:
        """Return what comes of something that does not wait, or the kind of problem that it raises."""
        results: list[Any] = []
        Deferred.fromCoroutine(work).addBoth(results.append)
        (result,) = results
        error = getattr(result, "value", None)
        if isinstance(error, ApiProblem):
            return error.kind
        if isinstance(error, BaseException):
            raise error
        return result

    # -- the model -----------------------------------------------------------------------------------------------

    def clashes(self, wanted: dict[str, Content], gone: set[str]) -> bool:
        """Whether rules that are changed would meet another rule on a port."""
        after = {name: kept.content.port for name, kept in self.now.items() if name not in gone}
        after |= {name: content.port for name, content in wanted.items()}
        return any(
            other != name and port == content.port for name, content in wanted.items() for other, port in after.items()
        )

    def commit(self, wanted: dict[str, Content], gone: set[str]) -> bool:
        """Change the model, and tell whether that is a revision."""
        after = dict(self.now)
        for name in gone:
            del after[name]
            self.count(name, None)
        for name, content in wanted.items():
            if name not in after or after[name].content != content:
                after[name] = Kept(self.count(name, content), content)
        if after == self.now:
            return False
        self.now = after
        self.states.append(after)
        return True

    def count(self, name: str, content: Content | None) -> int:
        """Return the next generation of a name, which has this content."""
        self.newest[name] = self.newest.get(name, 0) + 1
        self.entries[name, self.newest[name]] = content
        return self.newest[name]

    def expect(self, result: Any, wanted: dict[str, Content], gone: set[str]) -> None:
        """Check a change that nothing but a clash can hinder."""
        if self.clashes(wanted, gone):
            assert result is CONFLICT, result
        else:
            assert not isinstance(result, ProblemKind), result
            assert len(self.told) == self.commit(wanted, gone), self.told
        self.told.clear()

    # -- what people do ------------------------------------------------------------------------------------------

    def save(self, name: str, port: int, comment: str | None, old: str | None, generation: int | None) -> Any:
        """Save a rule."""
        text = (comment or "") + document_yaml(document(name, port))
        return self.result(self.book.save(text, MARA, name=old, generation=generation, as_written=comment is not None))

    @rule(name=NAMES, port=PORTS, comment=COMMENTS)
    def create(self, name: str, port: int, comment: str | None) -> None:
        """A name that is there is not made again."""
        found = self.save(name, port, comment, None, None)
        if name in self.now:
            assert found is CONFLICT
            return
        self.expect(found, {name: Content(port, comment, "ui")}, set())

    @rule(old=NAMES, name=NAMES, port=PORTS, comment=COMMENTS, behind=st.sampled_from([0, 0, 0, 1]))
    def replace(self, old: str, name: str, port: int, comment: str | None, behind: int) -> None:
        """Who has read the newest generation changes it, and maybe its name."""
        there = self.now.get(old)
        found = self.save(name, port, comment, old, there.generation - behind if there else 1)
        if there is None:
            assert found is NOT_FOUND
        elif behind:
            assert found is STALE
        elif name != old and name in self.now:
            assert found is CONFLICT
        else:
            self.expect(found, {name: Content(port, comment, "ui")}, {old} - {name})

    @rule(name=NAMES, behind=st.sampled_from([0, 0, 1]))
    def delete(self, name: str, behind: int) -> None:
        """Who has read the newest generation deletes it."""
        there = self.now.get(name)
        found = self.result(self.book.delete(name, MARA, there.generation - behind if there else 1))
        if there is None:
            assert found is NOT_FOUND
        elif behind:
            assert found is STALE
        else:
            self.expect(found, {}, {name})

    @rule(
        file=st.dictionaries(NAMES, st.tuples(PORTS, COMMENTS), max_size=3),
        manager=st.sampled_from(["git", "other"]),
        prune=st.booleans(),
        take_over=st.booleans(),
        dry_run=st.sampled_from([False, False, True]),
        behind=st.sampled_from([0, 0, 0, 1]),
    )
    def push(
        self,
        file: dict[str, tuple[int, str | None]],
        manager: str,
        prune: bool,
        take_over: bool,
        dry_run: bool,
        behind: int,
    ) -> None:
        """A file changes rules of its manager alone, but those that it takes over; and nothing in a dry run."""
        texts = [(comment or "") + document_yaml(document(name, port)) for name, (port, comment) in file.items()]
        request = PushRequest(manager=manager, prune=prune, take_over=take_over, dry_run=dry_run)
        revision = self.book.saved.revision - behind
        found = self.result(self.book.push(rules_yaml(texts).encode(), request, "ci", revision))
        own = f"push:{manager}"
        ports = [port for port, _ in file.values()]
        if len(set(ports)) < len(ports):
            assert found is INVALID
            return
        if behind:
            assert found is STALE
            return
        changed, foreign = set(), set()
        for name, (port, _) in file.items():
            there = self.now.get(name)
            if there is None or (there.content.port != port and there.content.manager == own):
                changed.add(name)
            elif there.content.manager != own:
                if take_over:
                    changed.add(name)
                elif there.content.port != port:
                    foreign.add(name)
        if foreign:
            assert found is CONFLICT
            return
        wanted = {
            name: Content(port, comment or "", own)
            for name, (port, comment) in file.items()
            if name in changed or self.now[name].content.manager == own
        }
        gone = {name for name, kept in self.now.items() if prune and kept.content.manager == own and name not in file}
        if dry_run and not self.clashes(wanted, gone):
            assert isinstance(found, PushOutcome), found
            assert (found.dry_run, found.revision, self.told) == (True, self.book.saved.revision, [])
            assert set(found.plan.deletes) == gone
            return
        self.expect(found, wanted, gone)

    @rule(name=NAMES, generation=st.integers(1, 6))
    def roll_back_rule(self, name: str, generation: int) -> None:
        """A generation that was comes back, also after a deletion, and a deletion does."""
        found = self.result(self.book.roll_back(MARA, name=name, generation=generation))
        if (name, generation) not in self.entries:
            assert found is NOT_FOUND
            return
        past = self.entries[name, generation]
        wanted = {} if past is None else {name: past}
        self.expect(found, wanted, {name} & set(self.now) if past is None else set())

    @precondition(lambda self: len(self.states) > 1)
    @rule(data=st.data())
    def roll_back_all(self, data: st.DataObject) -> None:
        """All rules are again what they were, and each is a new generation where it was another."""
        number = data.draw(st.integers(1, len(self.states)))
        found = self.result(self.book.roll_back(MARA, revision=number))
        if number == len(self.states):
            assert found is NOT_FOUND
            return
        past = self.states[number]
        # Only what has changed since is touched: nothing else can be another than it was.
        wanted = {name: kept.content for name, kept in past.items() if self.now.get(name) != kept}
        self.expect(found, wanted, set(self.now) - set(past))

    @rule()
    def restart(self) -> None:
        """All that was answered is on disk."""
        before = self.book.saved
        self.store.close()
        self.open()
        assert self.book.saved == before

    # -- what always holds ---------------------------------------------------------------------------------------

    @invariant()
    def is_as_modelled(self) -> None:
        """Rules, generations, texts and managers are those of the model, and each revision is one that changed them."""
        saved = self.book.saved
        assert saved.revision == len(self.states) - 1
        found = {
            name: Kept(each.generation, Content(each.rule.port, self.comment(each.yaml), each.manager))
            for name, each in saved.rules.items()
        }
        assert found == self.now, (found, self.now)
        for name, each in saved.rules.items():
            assert each.document == document(name, each.rule.port)

    @staticmethod
    def comment(text: str | None) -> str | None:
        """Return the comment above a text."""
        return None if text is None else "".join(line + "\n" for line in text.splitlines() if line.startswith("#"))

    @invariant()
    def history_is_whole(self) -> None:
        """The history has each generation once, with what it was and what it became."""
        entries = self.store.reader.read(lambda db: read_history(db, count=10_000))
        assert len(entries) == len(self.entries)
        known: dict[str, Any] = {}
        for entry in reversed(entries):
            assert entry.before == known.get(entry.name)
            known[entry.name] = entry.after
            content = self.entries[entry.name, entry.generation or 0]
            assert (entry.after is None) == (content is None)
            if content is not None:
                assert (entry.after["rule"]["port"], entry.after["manager"]) == (content.port, content.manager)


class RulebookModelTests(SynchronousTestCase):
    """The rulebook."""

    def test_model(self) -> None:
        """Whatever people and files do in whatever order, the rulebook is what its model is."""
        run_state_machine_as_test(RulebookModel, settings=settings(stateful_step_count=20))
