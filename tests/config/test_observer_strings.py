"""
Tests for L{webhookrx.config.observer_strings}.
"""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.config.observer_strings import default_observer, parse_observer
from webhookrx.config.settings import Observer
from webhookrx.errors import ConfigError


class ParseObserverTests(SynchronousTestCase):
    """
    Tests for L{parse_observer}.
    """

    def test_parts(self) -> None:
        """Name, arguments and options come out in their order, escapes undone."""
        text = r"observer:some.name:a\:b:k=v=w:x=\\"
        expected = Observer(text, "observer", ("some.name", "a:b"), (("k", "v=w"), ("x", "\\")))
        self.assertEqual(expected, parse_observer(text))

    def test_relative_file(self) -> None:
        """The path of a file is made absolute; the text stays what its user wrote."""
        observer = parse_observer("file:m.jsonl:format=json")
        self.assertEqual(("file:m.jsonl:format=json", (os.path.abspath("m.jsonl"),)), (observer.text, observer.args))

    def test_only_a_file_has_a_path(self) -> None:
        """The argument of another observer is left as it is, and so is a file without a path."""
        self.assertEqual(("a/b",), parse_observer("other:a/b").args)
        self.assertEqual((), parse_observer("file").args)

    def test_errors(self) -> None:
        """A missing name, a missing directory, and a directory in place of a file are errors."""
        cases = {
            "": "names no observer",
            ":x": "names no observer",
            "format=json": "names no observer",
            "file:/no/such/x.jsonl": '"/no/such" does not exist',
            "file:/": '"/" is a directory',
            "file:x\\": "backslash",
        }
        for text, fragment in cases.items():
            self.assertIn(fragment, self.assertRaises(ConfigError, parse_observer, text).problem)


class DefaultObserverTests(SynchronousTestCase):
    """
    Tests for L{default_observer}.
    """

    def test_working_directory(self) -> None:
        """Without systemd it is a file in the working directory."""
        self.assertEqual((os.path.abspath("messages.jsonl"),), default_observer({}).args)

    def test_state_directory(self) -> None:
        """Under systemd it is a file in the first state directory."""
        directory = self.mktemp()
        os.mkdir(directory)
        observer = default_observer({"STATE_DIRECTORY": f"{directory}:/var/lib/other"})
        self.assertEqual((os.path.abspath(os.path.join(directory, "messages.jsonl")),), observer.args)

    def test_colon_in_working_directory(self) -> None:
        """The spec string of the default leads back to the same path, whatever the directory is called."""
        directory = self.mktemp() + "=x"
        os.mkdir(directory)
        observer = default_observer({"STATE_DIRECTORY": directory})
        self.assertEqual(observer, parse_observer(observer.text))
