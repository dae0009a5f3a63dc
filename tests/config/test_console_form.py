"""
Tests for L{webhookrx.config.console_form} and L{webhookrx.config.console_options}.
"""

from __future__ import annotations

import os

from tests.config.test_console_files import GUID, IDENTITY_OF_ROUTER, OLD_KEY, OLD_TEXT
from tests.config.test_router_form import PLAIN, RouterCase
from webhookrx.config.console_files import NEXT, accept_bundle, mark_applied, write_identity
from webhookrx.config.console_options import lies_below
from webhookrx.config.option_reader import ConfigProblems
from webhookrx.management.bundle import BundleRouter, RouterBundle, digest, seal
from webhookrx.settings import Settings

URL = "https://console.example:9443"


class ConsoleFormTests(RouterCase):
    """From bundles to connectors."""

    def setUp(self) -> None:
        """Enrol."""
        super().setUp()
        self.console_dir = self.path("console")
        write_identity(self.console_dir, IDENTITY_OF_ROUTER)

    def bundle(self, revision: int, *rules: str, **labels: str) -> str:
        """Accept a bundle; return its digest."""
        text = "connector_rules:\n" + "".join(f"- {each}\n" for each in rules) if rules else "connector_rules: []\n"
        envelope = seal(
            RouterBundle(
                guid=GUID,
                revision=revision,
                made_at=1,
                router=BundleRouter("fra-1", labels),
                rules=text,
                authorities=("A",),
                signing_keys=(OLD_TEXT,),
            ),
            OLD_KEY,
        )
        accept_bundle(self.console_dir, envelope)
        return digest(envelope)

    def applied(self, revision: int, *rules: str) -> None:
        """Accept a bundle, and mark it as applied."""
        mark_applied(self.console_dir, self.bundle(revision, *rules))

    def router(self, running: Settings | None = None, **options: str) -> Settings:
        """Return the settings of a router."""
        named = {"console": URL, "console_dir": self.console_dir, "key_directory": self.directory, **options}
        return self.settings(running, **{name.replace("_", "-"): value for name, value in named.items()})

    def ports(self, settings: Settings) -> list[int]:
        """Return the ports of connectors."""
        return [source.connector.port for source in settings.sources if source.connector is not None]

    def revision(self, settings: Settings) -> int:
        """Return the revision in use; 0 without one."""
        assert settings.router is not None
        return 0 if settings.router.bundle is None else settings.router.bundle.revision

    def test_nothing_yet(self) -> None:
        """A router without a bundle has no connectors, and is neither blocked nor wrong."""
        settings = self.router()
        self.assertEqual(((), (), ""), (settings.sources, settings.blocked, settings.not_taken))

    def test_name(self) -> None:
        """A router asks the console for the name that it has been given here; one that no router may have is wrong."""
        agent = self.router(**{"router-name": "fra-7"}).console
        assert agent is not None
        self.assertEqual("fra-7", agent.name)
        self.assertRaises(ConfigProblems, self.router, **{"router-name": "-"})

    def test_labels_of_the_console_win(self) -> None:
        """Name and labels come from the console; labels of the host stay where the console has none."""
        rule = PLAIN.removesuffix("}") + ", selector: label.site = fra AND label.rack = r1}"
        self.bundle(3, rule, site="fra")
        settings = self.router(**{"router-label": "rack=r1"})
        assert settings.router is not None
        self.assertEqual(("fra-1", {"rack": "r1", "site": "fra"}), (settings.router.name, settings.router.labels))
        self.assertEqual([8181], self.ports(settings))
        self.assertEqual({"site": "fra"}, self.router(**{"router-label": "site=ber"}).router.labels)  # type: ignore[union-attr]

    def test_a_bundle_that_is_wrong_leaves_the_one_before(self) -> None:
        """Rules that can't be used are left aside at a start and at a reload, and it is said why."""
        self.applied(3, PLAIN)
        running = self.router()
        self.bundle(4, "{name: hooks, protocol: HTTP, port: none}")
        for before in (None, running):
            settings = self.router(before)
            self.assertEqual(([8181], 3), (self.ports(settings), self.revision(settings)))
            self.assertIn("port", settings.not_taken)

    def test_a_file_elsewhere_is_not_looked_at(self) -> None:
        """A rule may name files below the directories of the host alone, also by a link, and of each kind its own."""
        self.applied(3, PLAIN)
        allowed = self.path("keys")
        os.mkdir(allowed)
        os.symlink("/etc", os.path.join(allowed, "link"))
        for path in ("/etc/shadow", f"{allowed}/../host.key", f"{allowed}/link/shadow", allowed):
            for revision, rule in enumerate(
                (
                    f"{{name: a, protocol: HTTPS, port: 1, key_file: {path}, cert_file: {allowed}/c}}",
                    f"{{name: a, protocol: HTTPS, port: 1, key_file: {allowed}/k, cert_file: {path}}}",
                    f"{{name: a, protocol: HTTP, port: 1, auth_token_file: {path}}}",
                    f"{{name: a, protocol: HTTP, port: 1, sender: github, secrets_file: {path}}}",
                ),
                4,
            ):
                with open(os.path.join(self.console_dir, NEXT), "wb"):
                    pass
                os.unlink(os.path.join(self.console_dir, NEXT))
                self.bundle(revision, rule)
                settings = self.router(key_directory=allowed)
                self.assertEqual(3, self.revision(settings), rule)
                self.assertIn("--key-directory", settings.not_taken, rule)

    def test_a_missing_file_blocks(self) -> None:
        """With a missing file, a reload keeps what runs, and a start takes what was applied last."""
        self.applied(3, PLAIN)
        running = self.router()
        self.bundle(4, self.tls_rule(missing="key").replace("/no/", f"{self.directory}/no-"))
        for before in (running, None):
            settings = self.router(before)
            self.assertEqual(([8181], 3), (self.ports(settings), self.revision(settings)))
            self.assertIn("no-tls", settings.blocked[0].text)

    def test_it_excludes_rules(self) -> None:
        """A router has its rules from a file or from a console."""
        (error,) = self.errors(rules=self.rules(PLAIN), console=URL, **{"console-dir": self.console_dir})
        self.assertIn("excludes --rules", error)

    def test_what_a_console_is(self) -> None:
        """A URL that is not one of a console is refused without showing a password in it."""
        for url in ("http://console:1", "https://console/x", "https://me:s3cret@console", "console:9443", "https://"):
            (error,) = self.errors(console=url, **{"console-dir": self.console_dir})
            self.assertIn("https://HOST:PORT", error)
            self.assertNotIn("s3cret", error)

    def test_a_directory_is_needed(self) -> None:
        """Without a state directory, the directory is named."""
        (error,) = self.errors(console=URL)
        self.assertIn("--console-dir", error)

    def test_own_sources(self) -> None:
        """A receiver with sources of its own has them, and takes none of a console."""
        self.bundle(3, PLAIN)
        settings = self.router(port="8080")
        self.assertIsNone(settings.router)
        self.assertEqual(["default"], [source.name for source in settings.sources])


class LiesBelowTests(RouterCase):
    """Tests for L{lies_below}."""

    def test_names_that_begin_alike(self) -> None:
        """A directory whose name begins like the other is another."""
        self.assertTrue(lies_below("/srv/keys/a/b", ["/srv/keys"]))
        self.assertFalse(lies_below("/srv/keys-of-others/b", ["/srv/keys"]))
        self.assertFalse(lies_below("/srv/keys", ["/srv/keys"]))
        self.assertFalse(lies_below("/srv/keys/a", []))
