"""
Tests for L{webhookrx.config.options}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.config.limits import LIMITS, limit_table
from webhookrx.config.option import OptionScope
from webhookrx.config.options import BY_YAML_KEY, OPTIONS, option_table, parse_flag, shown_name
from webhookrx.errors import ConfigError


class TableTests(SynchronousTestCase):
    """
    Tests for L{OPTIONS}.
    """

    def test_names_are_unique(self) -> None:
        """No name, short name or YAML key stands for two options."""
        for names in (
            [option.name for option in OPTIONS],
            [option.short for option in OPTIONS if option.short],
            [key for option in OPTIONS for key in option.yaml_keys],
        ):
            self.assertEqual(len(set(names)), len(names))

    def test_help_is_half_a_sentence(self) -> None:
        """Each help text can stand in a table and, with a capital and a full stop, in --help."""
        for option in OPTIONS:
            self.assertRegex(option.help, r"^[a-z].*[^.]$|^[A-Z]{3}.*[^.]$", option.name)

    def test_only_the_token_is_secret(self) -> None:
        """The one value that is never shown is the token."""
        self.assertEqual(["auth-token"], [option.name for option in OPTIONS if option.secret])

    def test_command_options_are_not_in_the_file(self) -> None:
        """What tells the command what to do has no place in a file."""
        self.assertEqual(
            ["config", "check"], [option.name for option in OPTIONS if option.scope is OptionScope.COMMAND]
        )
        self.assertNotIn("config", BY_YAML_KEY)

    def test_plural_keys(self) -> None:
        """The two lists at the top of a file may have their plural, and also the word of the command line."""
        self.assertIs(BY_YAML_KEY["observers"], BY_YAML_KEY["observer"])
        self.assertIs(BY_YAML_KEY["limits"], BY_YAML_KEY["limit"])


class ParseFlagTests(SynchronousTestCase):
    """
    Tests for L{parse_flag}.
    """

    def test_words(self) -> None:
        """Six words in any case are known, and nothing else is taken for yes."""
        for word in ("yes", "on", "true", "YES", "True"):
            self.assertIs(True, parse_flag(word))
        for word in ("no", "off", "false", "No"):
            self.assertIs(False, parse_flag(word))
        for word in ("", "1", "0", "y", "optional-trusted", " yes"):
            self.assertIn("neither yes nor no", self.assertRaises(ConfigError, parse_flag, word).problem)


class ShownNameTests(SynchronousTestCase):
    """
    Tests for L{shown_name}.
    """

    def test_cut(self) -> None:
        """An unknown name is shown up to where a value may have run into it."""
        cases = {
            "pahts": "pahts",
            "auth_token s3cr3t": "auth_token…",
            "auth-tokens3cr3t": "auth-token…",
            "auth_token=s3cr3t": "auth_token…",
            "a b": "a…",
            "": "",
            "{": "…",
        }
        for word, shown in cases.items():
            self.assertEqual(shown, shown_name(word))


class OptionTableTests(SynchronousTestCase):
    """
    Tests for L{option_table} and L{limit_table}.
    """

    def test_rows(self) -> None:
        """Each option and each limit has one row, and all rows have the same cells."""
        for table, count in ((option_table(), len(OPTIONS)), (limit_table(), len(LIMITS))):
            lines = table.splitlines()
            self.assertEqual(count + 2, len(lines))
            self.assertEqual(1, len({line.replace("\\|", "").count("|") for line in lines}))

    def test_row(self) -> None:
        """A row holds spelling, YAML keys, repetition, default and meaning."""
        row = next(line for line in option_table().splitlines() if "--port" in line)
        self.assertTrue(row.startswith("| `-p, --port ENDPOINT` | `port` | yes | 80, or 443 with a key | where"), row)
