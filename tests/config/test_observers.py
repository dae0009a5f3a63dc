"""
Tests for L{webhookrx.config.observers}.
"""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from tests.specs import default_observer, parse_observer
from webhookrx.config import observers as config
from webhookrx.config.observers import Argument, ObserverSpec
from webhookrx.errors import ConfigError
from webhookrx.settings import Observer


class URLTests(SynchronousTestCase):
    """
    Tests for L{parse_observer} on C{http:} and C{syslog:}.
    """

    def test_url(self) -> None:
        """A URL needs no backslashes, may have them, and ends where the first option begins."""
        cases = {
            "http:https://logs.example:8443/in?a=b&c=d": ("https://logs.example:8443/in?a=b&c=d",),
            r"http:https\://logs.example\:8443/in": ("https://logs.example:8443/in",),
            "http:http://[::1]:8181/in": ("http://[::1]:8181/in",),
            r"http:http://h/a\:b=c": ("http://h/a:b=c",),
            "http": (),
        }
        for text, args in cases.items():
            self.assertEqual((args, ()), (parse_observer(text).args, parse_observer(text).options), text)

    def test_options_behind_a_url(self) -> None:
        """Options follow the URL; the names of files among them are made absolute."""
        observer = parse_observer(r"http:http://h:1/x:format=json:token_file=t:content_type=a\:b")
        options = (("format", "json"), ("token_file", os.path.abspath("t")), ("content_type", "a:b"))
        self.assertEqual((("http://h:1/x",), options), (observer.args, observer.options))

    def test_text_behind_options(self) -> None:
        """What stands behind the options is not silently made part of the URL."""
        self.assertEqual(("http://h", "x"), parse_observer("http:http://h:format=json:x").args)

    def test_password(self) -> None:
        """The password of a URL is in no error, wherever the mistake is."""
        cases = (
            "http:https://u:c4nary@h/x:format=json:format=json",
            "http:https://u:c4nary@h/x\\",
            "spool:/nonexistent/s:observer=http:https://u:c4nary@h/",
            "spool:s:t:observer=http:https://u:c4nary@h/",
            r"spool:observer=http\:https\://u\:c4nary@h/",
            "spool:s:observer=spool:t:observer=http:https://u:c4nary@h/",
        )
        for text in cases:
            problem = self.assertRaises(ConfigError, parse_observer, text).problem
            self.assertNotIn("c4nary", problem)

    def test_password_like_options(self) -> None:
        """A password that looks like an option is refused as a password, and nothing of it is quoted."""
        for text in (
            "http:https://u:tiger=s@h/x",
            "http:https://u:gzip=yes:tiger=s@h/x",
        ):
            error = self.assertRaises(ConfigError, parse_observer, text)
            self.assertIn("no user or password in the URL", str(error))
            self.assertNotIn("tiger", str(error))

    def test_at_sign_in_option(self) -> None:
        """An option may hold an at sign."""
        parsed = parse_observer("http:https://h:auth_scheme=me@there")
        self.assertEqual((("https://h",), (("auth_scheme", "me@there"),)), (parsed.args, parsed.options))

    def test_values_with_colons(self) -> None:
        """A value with colons is escaped, behind a spool, too; one with an equals sign or a comma is not."""
        text = "http:https://h/x:content_type=http\\://a\\:1/b:auth_scheme=source=${SOURCE},host=${HOST}"
        options = (("content_type", "http://a:1/b"), ("auth_scheme", "source=${SOURCE},host=${HOST}"))
        self.assertEqual(options, parse_observer(text).options)
        inner = parse_observer(f"spool:{os.path.abspath(self.mktemp())}:observer={text}").inner
        assert inner is not None
        self.assertEqual(options, inner.options)

    def test_syslog(self) -> None:
        """An IPv6 address stands in brackets, which are left out."""
        cases = {
            "syslog:tcp:logs.example:514": ("tcp", "logs.example", "514"),
            "syslog:tcp:[2001:db8::1]:514": ("tcp", "2001:db8::1", "514"),
            "syslog:udp:[::1]": ("udp", "::1"),
            "syslog:unix:/dev/log": ("unix", "/dev/log"),
            "syslog": (),
        }
        for text, args in cases.items():
            self.assertEqual(args, parse_observer(text).args, text)
        observer = parse_observer("syslog:tls:h:ca_file=ca.pem:timeout=5s")
        self.assertEqual((("ca_file", os.path.abspath("ca.pem")), ("timeout", "5s")), observer.options)


class SpoolTests(SynchronousTestCase):
    """
    Tests for L{parse_observer} on C{spool:}.
    """

    def test_plain(self) -> None:
        """All behind observer= is the other spec string, as it is."""
        observer = parse_observer("spool:s:size=1GiB:observer=http:https://h:1/x:format=json")
        expected = ("spool", (os.path.abspath("s"),), (("size", "1GiB"),))
        self.assertEqual(expected, (observer.name, observer.args, observer.options))
        self.assertEqual(parse_observer("http:https://h:1/x:format=json"), observer.inner)

    def test_escaped(self) -> None:
        """With escaped colons it is one value, and may stand anywhere."""
        observer = parse_observer(r"spool:s:observer=file\:m.jsonl:size=1GiB")
        self.assertEqual((("size", "1GiB"),), observer.options)
        self.assertEqual(parse_observer("file:m.jsonl"), observer.inner)
        self.assertEqual(parse_observer("stdout"), parse_observer("spool:s:observer=stdout").inner)

    def test_errors(self) -> None:
        """A directory and another observer are needed; a spool in a spool is none."""
        cases = {
            "spool": "no observer=",
            "spool:s": "no observer=",
            "spool:observer=stdout": "one directory",
            "spool:s:t:observer=stdout": "one directory",
            "spool:s:observer=": "names no observer",
            "spool:s:observer=spool:t:observer=stdout": "spool into a spool",
            f"spool:{__file__}:observer=stdout": "is not a directory",
            "spool:/nonexistent/s:observer=stdout": "does not exist",
        }
        for text, problem in cases.items():
            self.assertIn(problem, self.assertRaises(ConfigError, parse_observer, text).problem, text)


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


class CheckNoteTests(SynchronousTestCase):
    """What C{--check} prints besides."""

    def test_notes(self) -> None:
        """An observer with a note has one, also behind a spool, by its own arguments and options."""
        spec = ObserverSpec(("x",), Argument.URL, note=lambda args, given: f"{args} {given}")
        specs = {"noted": spec}

        def find(name: str) -> ObserverSpec:
            return specs.get(name, ObserverSpec())

        directory = os.path.abspath(self.mktemp())
        texts = ("stdout", "noted:a://b:x=1", f"spool:{directory}:observer=noted:c://d")
        observers = [config.parse_observer(text, find) for text in texts]

        self.assertEqual(["('a://b',) {'x': '1'}", "('c://d',) {}"], config.check_notes(observers, find))


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
