"""One name for one thing: no two classes of the package have the same name, private ones included."""

from __future__ import annotations

import ast
import os
from collections import defaultdict

from twisted.trial.unittest import SynchronousTestCase

PROJECT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def classes() -> dict[str, list[str]]:
    """Return all names of classes, without a leading underscore, and the modules that define them."""
    found = defaultdict(list)
    for directory, _, names in os.walk(os.path.join(PROJECT, "webhookrx")):
        for name in sorted(names):
            if name.endswith(".py"):
                path = os.path.join(directory, name)
                with open(path, encoding="utf-8") as file:
                    tree = ast.parse(file.read())
                for node in ast.walk(tree):
                    if isinstance(node, ast.ClassDef):
                        found[node.name.lstrip("_")].append(os.path.relpath(path, PROJECT))
    return found


class ClassNameTests(SynchronousTestCase):
    """A name that is searched for leads to one class."""

    def test_once(self) -> None:
        """No name of a class is there twice, with or without an underscore in front."""
        found = classes()
        self.assertGreater(len(found), 300)
        twice = {name: modules for name, modules in found.items() if len(modules) > 1}
        self.assertEqual({}, twice)
