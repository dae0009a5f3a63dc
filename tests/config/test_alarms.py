"""
Tests for L{webhookrx.config.alarms}.
"""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.config.starting import LOOPBACK, errors_of, start, write_text
from webhookrx.config.alarms import FIELDS
from webhookrx.management.alarm_rules import MOST_RULES, RECEIVER_KINDS, AlarmRule, AlarmSettings

URL = "https://alerts.example.com/c4nary"


class AlarmsTests(SynchronousTestCase):
    """What C{alarms:} and C{alarm_targets:} say."""

    def path(self, text: str) -> str:
        """Write a configuration file."""
        return write_text(self.mktemp(), "x.yaml", f"port: {LOOPBACK}\n{text}")

    def errors(self, text: str) -> list[str]:
        """Return the mistakes, with F for the file."""
        path = self.path(text)
        return [each.text.replace(path, "F") for each in errors_of(config=path)]

    def test_all(self) -> None:
        """Each kind has its defaults, and targets are known by their names and never shown."""
        path = self.path(
            f"alarm_targets: {{ops: '{URL}'}}\n"
            "alarms:\n"
            "- {name: quiet, kind: silent, when: sender = github OR label.site = fra, for: 6h, notify: ops}\n"
            "- {name: no, kind: refused, above: 5%}\n"
            "- {name: many, kind: refused, above: 6/m, for: 1m, when: reason = bad_token}\n"
            "- {name: gate, kind: gate_closed}\n"
            "- {name: ends, kind: certificate, for: 30d}\n"
            "- {name: late, kind: spool}\n"
        )
        resolved = start(config=path)
        rules = (
            AlarmRule("quiet", "silent", 21600.0, "sender = github OR label.site = fra", notify="ops"),
            AlarmRule("no", "refused", 300.0, share=0.05),
            AlarmRule("many", "refused", 60.0, "reason = bad_token", rate=0.1),
            AlarmRule("gate", "gate_closed", 300.0),
            AlarmRule("ends", "certificate", 30 * 86400.0),
            AlarmRule("late", "spool", 900.0),
        )
        self.assertEqual(rules, resolved.settings.alarms.rules)
        self.assertEqual(["ops"], [each.name for each in resolved.settings.alarms.targets])
        shown = [(each.name, each.value, each.origin) for each in resolved.effective if each.name == "alarm quiet"]
        self.assertEqual([("alarm quiet", "silent for 6h, tells ops", f"{path}:4")], shown)
        self.assertNotIn("c4nary", repr(resolved))

    def test_none(self) -> None:
        """A file without them has none."""
        self.assertEqual(AlarmSettings(), start(config=self.path("")).settings.alarms)

    def test_kinds(self) -> None:
        """Each kind says which fields its query may test."""
        self.assertEqual(set(RECEIVER_KINDS), set(FIELDS))

    def test_mistakes(self) -> None:
        """Each mistake has its line and says what is allowed."""
        head = "alarms:\n- name: a\n  kind: "
        for text, errors in (
            ("alarms: []", ["F:2: alarms: It takes a list with at least one alarm; leave it out for none."]),
            ("alarms:\n- x", ["F:3: alarms[0]: An alarm is written as keys and values, such as"]),
            ("alarms:\n- kind: spool", ["F:3: alarms[0]: It takes name:."]),
            ("alarms:\n- {name: a}", ["F:3: alarms[0]: It takes kind:."]),
            (f"{head}spol", ["F:4: alarms[0].kind: 'spol' is not one of silent, refused,"]),
            (f"{head}spool\n  wen: x", ['F:5: alarms[0]: There is no key "wen". Did you mean']),
            (f"{head}router_away", ["F:4: alarms[0].kind: 'router_away' is not one of"]),
            (f"{head}silent", ["F:3: alarms[0]: It takes for:, how long no message may come, such as 6h."]),
            (f"{head}silent\n  for: 6 weeks", ["F:5: alarms[0].for: '6 weeks' is not a duration;"]),
            (f"{head}silent\n  for: 0s", ["F:5: alarms[0].for: It takes a time from 1s to 366d."]),
            (f"{head}silent\n  for: 367d", ["F:5: alarms[0].for: It takes a time from 1s to 366d."]),
            (f"{head}refused", ["F:3: alarms[0]: It takes above:. It takes a part"]),
            (
                f"{head}refused\n  above: 5",
                ["F:5: alarms[0].above: It takes a part of all requests or a rate, such as"],
            ),
            (f"{head}refused\n  above: 100%", ["F:5: alarms[0].above: A part of all requests is less than 100%."]),
            (f"{head}spool\n  above: 5%", ["F:5: alarms[0].above: Only an alarm of kind refused takes it."]),
            (f"{head}gate_closed\n  when: a = b", ["F:5: alarms[0].when: An alarm of kind gate_closed is about the"]),
            (f"{head}spool\n  when: observer =", ["F:5: alarms[0].when: "]),
            (f"{head}spool\n  when: sender = x", ["F:5: alarms[0].when: 'sender' in column 1 is not one of observer."]),
            (f"{head}spool\n  notify: ops", ["F:5: alarms[0].notify: There is no target 'ops' in alarm_targets:."]),
            (f"{head}spool\n- {{name: a, kind: spool}}", ["F:5: alarms[1].name: Another alarm has the name a."]),
            ("alarms:\n- {name: 'a b', kind: spool}", ["F:3: alarms[0].name: A name has up to 63 letters"]),
            ("alarm_targets: x", ["F:2: alarm_targets: It takes names and URLs, such as"]),
        ):
            found = self.errors(text)
            self.assertEqual(len(errors), len(found), (text, found))
            for error, wanted in zip(found, errors, strict=True):
                self.assertIn(wanted.replace("'", '"'), error.replace("'", '"'), text)

    def test_urls(self) -> None:
        """A URL that can't be told is a mistake that does not quote it."""
        for url in (
            "alerts.example.com/c4nary",
            "ftp://alerts.example.com/c4nary",
            "https:///c4nary",
            "https://me:c4nary@alerts.example.com/",
            "https://alerts.example.com/#c4nary",
            "https://alerts.example.com/c4nary x",
            "https://alerts.example.com/c4näry",
            "https://alerts.example.com:99999/c4nary",
            "https://[c4nary/",
            "http://169.254.169.254/c4nary",
            "http://[fe80::1]/c4nary",
            "https://alerts.example.com/c4nary" + 2048 * "x",
        ):
            errors = self.errors(f"alarm_targets: {{ops: '{url}'}}")
            self.assertEqual(1, len(errors), (url, errors))
            self.assertIn("F:2: alarm_targets.ops: ", errors[0])
            for part in ("c4n", "me:", "169"):
                self.assertNotIn(part, errors[0])

    def test_too_many(self) -> None:
        """There are only so many alarms."""
        items = "".join(f"- {{name: a{each}, kind: spool}}\n" for each in range(MOST_RULES + 1))
        self.assertEqual(
            [f"F:3: alarms[0]: There are up to {MOST_RULES} alarms, and these are {MOST_RULES + 1}."],
            self.errors(f"alarms:\n{items}"),
        )

    def test_unused(self) -> None:
        """A target that no alarm tells is probably not meant."""
        self.assertIn(
            "No alarm tells it.", " ".join(start(config=self.path(f"alarm_targets: {{a: '{URL}'}}")).settings.warnings)
        )
