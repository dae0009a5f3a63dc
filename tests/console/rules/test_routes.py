"""Rules of a console, over its routes."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from twisted.trial.unittest import SynchronousTestCase

from tests.console.rules.calling import Called, RulesCalls
from webhookrx.console.rules.rulebook import Rulebook
from webhookrx.management.rule_documents import document_yaml, rules_yaml
from webhookrx.router.rules.rule import Host

A: dict[str, Any] = {"name": "a", "protocol": "HTTP", "port": 8080, "selector": "label.site = fra"}
WRITTEN = "# why\nname: a\nprotocol: HTTP   # for now\nport: 8080\n"
FILE = """\
connector_rules:
  # of b
  - {name: b, selector: label.site = ber, protocol: HTTP, port: 8080}
  - name: c
    selector: name = c
    protocol: HTTP
    port: 8082
"""


class RulesCase(SynchronousTestCase):
    """A console with nothing in it."""

    def setUp(self) -> None:
        """Make it."""
        self.call = RulesCalls(self)

    def names(self) -> list[str]:
        """Return the names of all rules, of the store itself."""
        again = Rulebook(self.call.store)
        self.call.result(again.start())
        self.assertEqual(again.saved, self.call.console.rulebook.saved)
        return list(again.saved.rules)


class OneRuleTests(RulesCase):
    """C{/rules} and C{/rules/{name}}."""

    def test_life(self) -> None:
        """A rule is made, shown, changed and deleted, and its generations go on when it is made again."""
        made = self.call("POST", "/rules", A)
        self.assertEqual((201, "g1", A, "ui"), (made.status, made.etag, made.facts["document"], made.facts["manager"]))
        changed = self.call("PUT", "/rules/a", A | {"port": 8081}, if_match="g1")
        self.assertEqual((200, "g2"), (changed.status, changed.etag))
        self.assertEqual(8081, self.call("GET", "/rules/a").facts["document"]["port"])
        self.assertEqual(204, self.call("DELETE", "/rules/a", if_match="g2").status)
        self.assertEqual(404, self.call("GET", "/rules/a").status)
        self.assertEqual([], self.names())
        self.assertEqual("g4", self.call("POST", "/rules", A).etag)
        history = self.call("GET", "/rules/a/history").facts["entries"]
        self.assertEqual(["create", "delete", "update", "create"], [each["operation"] for each in history])
        self.assertEqual({("mara", "api")}, {(each["by"], each["via"]) for each in history})

    def test_as_written(self) -> None:
        """A text is kept with its comments until the rule is saved as JSON."""
        self.call("POST", "/rules", yaml=WRITTEN)
        shown = self.call("GET", "/rules/a", headers={"Accept": "application/yaml"})
        self.assertEqual(WRITTEN, shown.body.decode())
        self.assertTrue(self.call("GET", "/rules/a").facts["as_written"])
        self.call("PUT", "/rules/a", A, if_match="g1")
        shown = self.call("GET", "/rules/a", headers={"Accept": "application/yaml"})
        self.assertNotIn("#", shown.body.decode())

    def test_wrong(self) -> None:
        """What is wrong is told with code, path and place, and nothing is saved."""
        found = self.call("POST", "/rules", yaml="name: a\nprotocol: FTP\nport: 0\n")
        self.assertEqual(422, found.status)
        told = [(each["code"], each["path"], each["line"]) for each in found.facts["findings"]]
        self.assertEqual([("bad-protocol", ["protocol"], 2), ("port-range", ["port"], 3)], told)
        self.assertEqual([], self.names())

    def test_stale(self) -> None:
        """Who has read an older generation gets what is there now, and both changes beside it."""
        self.call("POST", "/rules", A)
        self.call("PUT", "/rules/a", A | {"port": 8081}, if_match="g1")
        found = self.call("PUT", "/rules/a", A | {"suffix": "in"}, if_match="g1")
        self.assertEqual((412, 2), (found.status, found.facts["current"]["generation"]))
        both = found.facts["three_way"]
        self.assertEqual(A | {"port": 8081, "suffix": "in"}, both["merged"])
        self.assertEqual(412, self.call("DELETE", "/rules/a", if_match="g1").status)
        self.assertEqual(400, self.call("DELETE", "/rules/a", if_match="r1").status)
        self.assertEqual(428, self.call("DELETE", "/rules/a").status)

    def test_renamed(self) -> None:
        """Another name is one change of two rules, unless there is a rule of that name."""
        self.call("POST", "/rules", A)
        self.assertEqual(200, self.call("PUT", "/rules/a", A | {"name": "z"}, if_match="g1").status)
        self.assertEqual(["z"], self.names())
        self.call("POST", "/rules", A | {"port": 8081})
        found = self.call("PUT", "/rules/a", A | {"name": "z"}, if_match="g3")
        self.assertEqual(409, found.status)
        self.assertEqual(["a", "z"], self.names())

    def test_clash(self) -> None:
        """A rule that meets another on a port is refused: on routers that are known, or whatever the routers."""
        self.call("POST", "/rules", A)
        found = self.call("POST", "/rules", A | {"name": "b"})
        self.assertEqual((409, "port-clash"), (found.status, found.facts["findings"][0]["code"]))
        self.assertEqual(201, self.call("POST", "/rules", A | {"name": "b", "selector": "label.os = x"}).status)
        self.call.console.rulebook._routers = lambda: (Host("r", labels={"site": "fra", "kind": "y"}),)
        found = self.call("POST", "/rules", A | {"name": "c", "selector": "label.kind = y"})
        self.assertEqual((409, ["port"]), (found.status, found.facts["findings"][0]["path"]))
        self.assertEqual(["a", "b"], self.names())

    def test_names(self) -> None:
        """A name is whatever a path of the API can have, percent-encoded; another one is refused, with its place."""
        for number, name in enumerate(("a b", "a:rollback", "a%2fb", "ä", "...", "-", "?", "#", "a+b", '"', "history")):
            with self.subTest(name=name):
                self.assertEqual(201, self.call("POST", "/rules", A | {"name": name, "port": 9000 + number}).status)
                self.assertEqual(name, self.call("GET", f"/rules/{quote(name, safe='')}").facts["name"])
                self.assertEqual(204, self.call("DELETE", f"/rules/{quote(name, safe='')}", if_match="g1").status)
        self.call("POST", "/rules", A)
        for name in (".", "..", "a/b", "/", "a\\b", "a\xa0b", "\ue000"):
            with self.subTest(name=name):
                file = rules_yaml([document_yaml(A), document_yaml(A | {"name": name, "port": 9000})])
                for found, path in (
                    (self.call("POST", "/rules", A | {"name": name}), ["name"]),
                    (self.call("PUT", "/rules/a", A | {"name": name}, if_match="g1"), ["name"]),
                    (
                        self.call("PUT", "/rules.yaml?manager=git", yaml=file, if_match="r23"),
                        ["connector_rules", 1, "name"],
                    ),
                ):
                    told = [(each["code"], each["path"]) for each in found.facts["findings"]]
                    self.assertEqual((422, [("bad-name", path)]), (found.status, told))
        self.assertEqual(["a"], self.names())

    def test_values(self) -> None:
        """What is saved as JSON is what YAML would make of it: digits stay, and so does every character."""
        value = b'{"n":[1.10,1e400,-0.0,123456789012345678901234567890],"t":"\\u0085\\u2028\xf0\x9f\x98\x80"}'
        steps = b'[{"set":{"field":"log.body.x","value":%s}}]' % value
        rule = b'{"name":"a","protocol":"HTTP","port":8080,"preprocessing":{"steps":%s}}' % steps
        made = self.call("POST", "/rules", rule)
        self.assertEqual(201, made.status, made.body)
        digits = value.partition(b',"t"')[0]
        self.assertIn(digits, made.body)
        self.assertEqual("\x85\u2028\U0001f600", self.steps(made)["t"])
        shown = self.call("GET", "/rules/a", headers={"Accept": "application/yaml"}).body.decode()
        again = self.call("PUT", "/rules/a", yaml=shown, if_match="g1")
        self.assertEqual(self.steps(made), self.steps(again))
        self.assertIn(digits, again.body)
        for target in ("/rules", "/activity", "/rules/a/history"):
            self.assertIn(digits, self.call("GET", target).body)

    def steps(self, called: Called) -> Any:
        """Return the value that the first step of a rule sets."""
        return called.facts["document"]["preprocessing"]["steps"][0]["set"]["value"]

    def test_read_only(self) -> None:
        """Where files are the only writer, nothing else changes rules."""
        self.call = RulesCalls(self, read_only_rules=True)
        self.assertEqual(403, self.call("POST", "/rules", A).status)
        self.assertEqual(403, self.call("PUT", "/rules/a", A, if_match="g1").status)
        self.assertEqual(403, self.call("DELETE", "/rules/a", if_match="g1").status)
        self.assertEqual(403, self.call("POST", "/rules/a:rollback", {"generation": 1}).status)
        self.assertEqual(403, self.call("POST", "/revisions/1:rollback").status)
        self.assertEqual(200, self.call("PUT", "/rules.yaml?manager=git", yaml=FILE, if_match="r0").status)

    def test_rollback(self) -> None:
        """An older generation comes back as a new one, text and manager with it."""
        self.call("POST", "/rules", yaml=WRITTEN)
        self.call("PUT", "/rules/a", A, if_match="g1")
        found = self.call("POST", "/rules/a:rollback", {"generation": 1})
        self.assertEqual((200, 3), (found.status, found.facts["rules"][0]["generation"]))
        self.assertEqual(WRITTEN, self.call("GET", "/rules/a", headers={"Accept": "application/yaml"}).body.decode())
        self.assertEqual(404, self.call("POST", "/rules/a:rollback", {"generation": 9}).status)


class PushTests(RulesCase):
    """C{/rules.yaml}."""

    def push(self, text: str = FILE, query: str = "manager=git", revision: int | None = None) -> Any:
        """Push a file onto the newest revision, or another."""
        newest = self.call.console.rulebook.saved.revision if revision is None else revision
        return self.call("PUT", f"/rules.yaml?{query}", yaml=text, if_match=f"r{newest}")

    def test_all(self) -> None:
        """All rules of a file are one revision, and come back as they were written."""
        found = self.push()
        self.assertEqual((200, 1, ["b", "c"]), (found.status, found.facts["revision"], found.facts["plan"]["creates"]))
        self.assertEqual(["b", "c"], self.names())
        text = self.call("GET", "/rules.yaml")
        self.assertIn("  # of b\n  - {name: b", text.body.decode())
        self.assertEqual("r1", text.etag)
        again = self.push(text.body.decode())
        self.assertEqual((1, 2), (again.facts["revision"], again.facts["plan"]["unchanged"]))

    def test_nothing_half(self) -> None:
        """A file with one wrong rule, or one that clashes, changes nothing."""
        found = self.push(FILE + "  - {name: d, protocol: FTP, port: 9001}\n")
        self.assertEqual((422, ["connector_rules", 2, "protocol"]), (found.status, found.facts["findings"][-1]["path"]))
        self.call("POST", "/rules", A | {"name": "z", "port": 8082, "selector": "name = c"})
        found = self.push()
        self.assertEqual(409, found.status)
        (told,) = found.facts["findings"]
        self.assertEqual(("port-clash", ["connector_rules", 1, "port"], 7), (told["code"], told["path"], told["line"]))
        self.assertEqual(["z"], self.names())

    def test_dry_run(self) -> None:
        """A dry run says the same and changes nothing, nor does a later change see anything of it."""
        found = self.push(query="manager=git&dry_run=true")
        self.assertEqual((200, ["b", "c"], 0), (found.status, found.facts["plan"]["creates"], found.facts["revision"]))
        self.assertEqual([], self.names())
        self.push(FILE.replace("8082", "8083"))
        self.assertEqual(8083, self.call("GET", "/rules/c").facts["document"]["port"])
        self.assertEqual(["b", "c"], self.names())

    def test_prune(self) -> None:
        """Rules that the file lacks stay, unless they are pruned; those of others stay in any case."""
        self.push()
        self.call("POST", "/rules", A | {"port": 8090})
        nothing = "connector_rules: []"
        self.assertEqual(["b", "c"], self.push(nothing).facts["plan"]["left"])
        self.assertEqual(["a", "b", "c"], self.names())
        self.assertEqual([], self.push(nothing, "manager=other&prune=true").facts["plan"]["deletes"])
        self.push(nothing, "manager=git&prune=true")
        self.assertEqual(["a"], self.names())

    def test_foreign(self) -> None:
        """A rule of another manager is not changed, unless it is taken over; saved by hand it is nobody's any more."""
        self.push()
        self.call("PUT", "/rules/c", {"name": "c", "protocol": "HTTP", "port": 9000}, if_match="g1")
        found = self.push()
        self.assertEqual((409, {"c": "ui"}), (found.status, found.facts["refused"]))
        found = self.push(query="manager=git&take_over=true&note=again")
        self.assertEqual("ui", found.facts["plan"]["updates"][0]["taken_from"])
        (newest, *_) = self.call("GET", "/activity?count=1").facts["entries"]
        self.assertEqual(("push:git", "again", "c"), (newest["via"], newest["note"], newest["name"]))

    def test_comment(self) -> None:
        """A push of another comment changes the text, and that is a revision."""
        self.push()
        found = self.push(FILE.replace("# of b", "# of b, still"))
        self.assertEqual(2, found.facts["revision"])
        self.assertIn("of b, still", self.call("GET", "/rules.yaml").body.decode())

    def test_stale(self) -> None:
        """A push on rules that have changed since they were read is refused."""
        self.push()
        self.assertEqual(412, self.push(revision=0).status)

    def test_hosts(self) -> None:
        """The inventory of a file is used for its checks, and that it is not kept is told."""
        found = self.push(FILE + "hosts: [{name: c, labels: {site: ber}}]\n")
        self.assertEqual([("hosts-not-kept", 8)], [(f["code"], f["line"]) for f in found.facts["findings"]])
        self.assertNotIn("hosts", self.call("GET", "/rules.yaml").body.decode())

    def test_revision_rollback(self) -> None:
        """All rules are what they were at a revision: changed ones, deleted ones and new ones."""
        self.push()
        self.call("PUT", "/rules/c", {"name": "c", "protocol": "HTTP", "port": 9000}, if_match="g1")
        self.call("DELETE", "/rules/b", if_match="g1")
        self.call("POST", "/rules", A | {"port": 8090})
        found = self.call("POST", "/revisions/1:rollback")
        self.assertEqual((200, "r5"), (found.status, found.etag))
        self.assertEqual(["b", "c"], self.names())
        self.assertEqual(8082, self.call("GET", "/rules/c").facts["document"]["port"])
        self.assertEqual(404, self.call("POST", "/revisions/77:rollback").status)

    def test_rollback_of_what_was_read(self) -> None:
        """With the ETag of the rules, only they are rolled back."""
        self.push()
        self.call("DELETE", "/rules/b", if_match="g1")
        self.assertEqual(412, self.call("POST", "/revisions/1:rollback", if_match="r1").status)
        self.assertEqual(400, self.call("POST", "/revisions/1:rollback", if_match="g2").status)
        self.assertEqual(["c"], self.names())
        self.assertEqual("r3", self.call("POST", "/revisions/1:rollback", if_match="r2").etag)
        self.assertEqual(["b", "c"], self.names())

    def test_rollback_preview(self) -> None:
        """What rolling back would change is told, and nothing is changed."""
        self.push()
        self.call("PUT", "/rules/c", {"name": "c", "protocol": "HTTP", "port": 9000}, if_match="g1")
        self.call("DELETE", "/rules/b", if_match="g1")
        self.call("POST", "/rules", A | {"port": 8090})
        found = self.call("POST", "/revisions/1:preview")
        self.assertEqual((200, "r4"), (found.status, found.etag))
        plan = found.facts
        self.assertEqual((["b"], ["a"], []), (plan["creates"], plan["deletes"], plan["findings"]))
        (update,) = plan["updates"]
        self.assertEqual("c", update["name"])
        self.assertIn({"field": "port", "before": 9000, "after": 8082}, update["changes"])
        self.assertEqual(["a", "c"], self.names())
        self.call("POST", "/revisions/1:rollback", if_match="r4")
        again = self.call("POST", "/revisions/1:preview").facts
        self.assertEqual(([], [], []), (again["creates"], again["updates"], again["deletes"]))
        self.assertEqual(404, self.call("POST", "/revisions/77:preview").status)

    def test_revision_shown(self) -> None:
        """A revision is shown with its changes, a page at a time."""
        self.push()
        found = self.call("GET", "/revisions/1?count=1").facts
        self.assertEqual((1, "mara", "push:git", 2), (found["number"], found["by"], found["via"], found["changes"]))
        (entry,) = found["entries"]
        (older,) = self.call("GET", f"/revisions/1?before={entry['id']}").facts["entries"]
        self.assertEqual({"b", "c"}, {entry["name"], older["name"]})
        for number in ("2", "x", "9999999999999999"):
            self.assertEqual(404, self.call("GET", f"/revisions/{number}").status, number)
