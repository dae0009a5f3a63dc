"""
Tests for L{tests.mutants.candidates} and L{tests.mutants.operators}.
"""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent

from twisted.trial.unittest import SynchronousTestCase

SKIP = None if find_spec("cosmic_ray") else "needs pip install -e '.[mutants]'"

if SKIP is None:
    from cosmic_ray.mutating import mutate_code

    from tests.mutants.candidates import Candidate, candidates_of, make, sample
    from tests.mutants.operators import OPERATORS, DropStatement, OtherWord, PlainAssignment, UnhandledError

CODE = """
def total(sizes: list[int], most: int) -> int:
    found = 0
    for size in sizes:
        if size > most:
            raise ValueError(size)
        found += size
    return found
"""


def diffs(source: str) -> list[str]:
    """Return what all mutants of a text change, each as it was and as it is, on one line."""
    made = [make(candidate, source) for candidate in candidates_of("a.py", source)]
    return sorted(" ".join(mutant.diff.split()) for mutant in made if mutant is not None)


class CandidateTests(SynchronousTestCase):
    """All mutants of a text."""

    skip = SKIP

    def test_all(self) -> None:
        """Each statement, condition, number and loop of a function has its faults."""
        self.assertEqual(
            [
                "- for size in sizes: + for size in []:",
                "- found += size + found = size",
                "- found += size + pass",
                "- found = 0 + found = -1",
                "- found = 0 + found = 1",
                "- if size > most: + if not size > most:",
                "- if size > most: + if size >= most:",
                "- raise ValueError(size) + pass",
            ],
            diffs(CODE),
        )

    def test_none(self) -> None:
        """What no test ought to look at has none."""
        for text in (
            '"""Docs of 1 + 2."""',
            "a: int | None",
            "A: TypeAlias = int | bytes",
            "def f(a: int | bytes, *, b: list[int] | None) -> int | None: ...",
            "assert a > 1",
            "if TYPE_CHECKING:\n    import a\n    b = 1",
            "class A(B, frozen=True): ...",
            "@a(b=True)\nclass A: ...".replace("@a(b=True)\n", ""),
            "f'{a + 1:.2f}'",
            "'a' + b + None",
            "@final\nclass A: ...",
            "LARGE = 64",
            "def f(a, /, *b, **c): ...",
            "a = {**b}",
        ):
            self.assertEqual([], diffs(text), text)

    def test_programs(self) -> None:
        """Every mutant is a program, and another one than the code."""
        for candidate in candidates_of("a.py", CODE):
            mutant = make(candidate, CODE)
            assert mutant is not None
            self.assertNotEqual(ast.dump(ast.parse(CODE)), ast.dump(ast.parse(mutant.mutated)))

    def test_names(self) -> None:
        """A name tells what stands where in which function, whatever line that is; the same text twice has a number."""
        source = dedent("""
            class A:
                def b(self):
                    self.c()
                    self.c()
        """)
        names = ["a.py: A.b: self.c(): DropStatement", "a.py: A.b: self.c(): DropStatement (2)"]
        for moved in (source, f"import d\n\n{source}"):
            self.assertEqual(names, [candidate.name for candidate in candidates_of("a.py", moved)])

    def test_our_operators(self) -> None:
        """Each of ours does what its examples say."""
        for kind in (DropStatement, PlainAssignment, OtherWord, UnhandledError):
            for example in kind.examples():
                mutated = mutate_code(example.pre_mutation_code, kind(), example.occurrence)
                self.assertEqual(example.post_mutation_code, mutated)

    def test_operators_of_others(self) -> None:
        """All that are named are there."""
        for name in ("ReplaceComparisonOperator_Lt_LtE", "AddNot", "NumberReplacer"):
            self.assertIn(name, OPERATORS)


class SampleTests(SynchronousTestCase):
    """Samples."""

    skip = SKIP

    def setUp(self) -> None:
        """Write a file of many functions."""
        self.root = Path(self.mktemp())
        self.root.mkdir(parents=True)
        self.write(20)

    def write(self, functions: int) -> None:
        text = "".join(CODE.replace("total", f"total_{number}") for number in range(functions))
        (self.root / "a.py").write_text(text, encoding="utf-8")
        self.candidates: list[Candidate] = list(candidates_of("a.py", text))

    def names(self, seed: int, count: int | None = 10) -> list[str]:
        """Return what a sample holds."""
        return [mutant.name for mutant in sample(self.candidates, seed, count, self.root)]

    def test_seed(self) -> None:
        """The same seed gives the same sample, whatever the order of the files; another gives another."""
        first = self.names(1)
        self.candidates.reverse()
        self.assertEqual((10, first), (len(first), self.names(1)))
        self.assertNotEqual(first, self.names(2))

    def test_other_code(self) -> None:
        """Code that is added elsewhere takes few places of a sample."""
        first = self.names(1, 50)
        self.write(22)
        self.assertGreaterEqual(len(set(first) & set(self.names(1, 50))), 35)

    def test_places(self) -> None:
        """A number is one more or one less, not both, unless all are asked for."""
        some = [name.rpartition(":")[0] for name in self.names(1, 10**6) if "NumberReplacer" in name]
        every = [name for name in self.names(1, None) if "NumberReplacer" in name]
        self.assertEqual((20, 20, 40), (len(some), len(set(some)), len(every)))
