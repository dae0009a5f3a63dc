"""
Tests for L{webhookrx.console.own_settings}: settings by the API, what they refuse, and what goes by them.
"""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.defer import Deferred

from tests.console.people.test_people import PeopleCase
from tests.http.wire import Response
from webhookrx.console.counts.count_tables import (
    CountWrites,
    SeriesKey,
    SeriesLabels,
    cut_counts,
    write_counts,
)
from webhookrx.console.own_settings.live_settings import LiveSettings
from webhookrx.console.own_settings.setting_types import RetentionSetting
from webhookrx.console.store import audit
from webhookrx.console.store.history import read_history
from webhookrx.management.rollups import CountedPart, step_for

DAY = 86_400
DEFAULT = {"1m": 21_600, "10m": 259_200, "1h": 2_592_000, "1d": 63_072_000, "audit": 100_000}


class OwnSettingsTests(PeopleCase):
    """Settings that admins change."""

    def setUp(self) -> None:
        """Sign an admin in."""
        super().setUp()
        self.add("mara", "admin")
        self.mine = self.session()

    def put(self, name: str, body: Any, etag: str = '"g0"') -> Response:
        """Return the answer to a change."""
        return self.ask("PUT", f"/settings/{name}", body, if_match=etag, **self.mine)

    def shown(self, name: str) -> tuple[str, Any]:
        """Return a setting, with its ETag."""
        response = self.ask("GET", f"/settings/{name}", **self.mine)
        return response.headers["etag"], json.loads(response.body)

    def test_masks(self) -> None:
        """Masks have no spaces around them and none twice, have a history, and stay over a restart."""
        self.assertEqual(('"g0"', {"names": []}), self.shown("masks"))
        response = self.put("masks", {"names": [" iban ", "IBAN", "Geburtstag"]})
        self.assertEqual((200, '"g1"'), (response.status, response.headers["etag"]))
        self.assertEqual(('"g1"', {"names": ["iban", "Geburtstag"]}), self.shown("masks"))
        self.assertEqual(200, self.put("masks", {"names": []}, '"g1"').status)
        entries = self.store.reader.read(lambda db: read_history(db, kind="setting", name="masks"))
        self.assertEqual([("mara", "ui", "update", 2), ("mara", "ui", "create", 1)], [
            (each.by, each.via, each.operation, each.generation) for each in entries
        ])  # fmt: skip
        self.assertEqual(({"names": ["iban", "Geburtstag"]}, {"names": []}), (entries[0].before, entries[0].after))
        again = LiveSettings(self.console)
        self.successResultOf(Deferred.fromCoroutine(again.start()))
        self.assertEqual((2, ()), (again.generations["masks"], again.masks.names))

    def test_same(self) -> None:
        """What is saved as it is makes no history."""
        self.put("masks", {"names": ["iban"]})
        self.assertEqual('"g1"', self.put("masks", {"names": ["iban"]}, '"g1"').headers["etag"])

    def test_conflict(self) -> None:
        """Who has read an older one is told what is there."""
        self.put("masks", {"names": ["iban"]})
        response = self.put("masks", {"names": ["dob"]})
        self.assertEqual(412, response.status)
        self.assertEqual({"names": ["iban"]}, json.loads(response.body)["current"])
        self.assertEqual(428, self.ask("PUT", "/settings/masks", {"names": []}, **self.mine).status)

    def test_bad_masks(self) -> None:
        """Names that can't be seen, are too long, or too many are refused."""
        for names in ([""], ["  "], ["a\nb"], ["\u202e"], ["x" * 129], ["x"] * 257, [1]):
            self.assertEqual(422, self.put("masks", {"names": names}).status, names)
        self.assertEqual(422, self.put("masks", {"name": []}).status)
        self.assertEqual(["names", 1], json.loads(self.put("masks", {"names": ["a", ""]}).body)["findings"][0]["path"])

    def test_rights(self) -> None:
        """Everyone sees them, and admins alone change them."""
        self.add("vera", "editor")
        vera = self.session("vera")
        for name, body in (("masks", {"names": []}), ("retention", DEFAULT)):
            self.assertEqual(200, self.ask("GET", f"/settings/{name}", **vera).status)
            response = self.ask("PUT", f"/settings/{name}", body, if_match='"g0"', **vera)
            self.assertEqual(403, response.status)

    def test_retention(self) -> None:
        """How long counts are kept has bounds, and no step is kept shorter than a finer one."""
        self.assertEqual(('"g0"', DEFAULT), self.shown("retention"))
        for changes, paths in (
            ({"1m": 3599}, [["1m"]]),
            ({"1m": 2 * DAY}, [["1m"]]),
            ({"10m": 14 * DAY, "1h": 7 * DAY}, [["1h"]]),
            ({"1h": 180 * DAY, "1d": 90 * DAY}, [["1d"]]),
            ({"1d": 11 * 365 * DAY, "audit": 9_999}, [["1d"], ["audit"]]),
            ({"audit": 1_000_001}, [["audit"]]),
        ):
            response = self.put("retention", {**DEFAULT, **changes})
            self.assertEqual(422, response.status, changes)
            self.assertEqual(paths, [each["path"] for each in json.loads(response.body)["findings"]])
        changed = {**DEFAULT, "1m": 3600, "audit": 10_000}
        self.assertEqual(200, self.put("retention", changed).status)
        self.assertEqual(('"g1"', changed), self.shown("retention"))

    def test_counts_go_by_it(self) -> None:
        """Sums are cut as retention says, and a question takes a step that reaches back far enough."""
        now = int(self.clock.seconds())
        key, hours = SeriesKey("g", "a"), 5
        parts = {key: {now - hours * 3600: CountedPart(1, 10)}}
        labels = {key: SeriesLabels("a", "hooks", 8080)}
        self.store.writer.write(lambda tx: write_counts(tx, CountWrites(parts, labels, {}, {})))
        self.put("retention", {**DEFAULT, "1m": 3600})
        self.store.writer.write(lambda tx: cut_counts(tx, self.console.live.retention.steps))
        left = self.store.reader.read(
            lambda db: [db.execute(f"SELECT count(*) FROM roll_{step}").fetchone()[0] for step in ("1m", "10m")]
        )
        self.assertEqual([0, 1], left)
        for steps, expected in ((RetentionSetting().steps, "1m"), (self.console.live.retention.steps, "10m")):
            step = step_for(now - hours * 3600, now, 1, now, steps)
            self.assertEqual(expected, step and step.name)

    def test_audit_goes_by_it(self) -> None:
        """The audit keeps as many entries as retention says."""
        self.put("retention", {**DEFAULT, "audit": 10_000})

        def come_and_go(tx: Any) -> None:
            tx.execute(
                "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10500)"
                " INSERT INTO audit (at, by, via, event) SELECT 1, 'mara', 'ui', 'login' FROM n"
            )
            audit.note(tx, "mara", "ui", "192.0.2.7", "login")

        self.store.writer.write(come_and_go)
        (count,) = self.store.reader.read(lambda db: db.execute("SELECT count(*) FROM audit").fetchone())
        self.assertEqual(10_000, count)
