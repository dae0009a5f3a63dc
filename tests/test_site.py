"""Tests for L{tests.site}."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests import documents, site


class LoadedFromElsewhereTests(SynchronousTestCase):
    """What a browser would fetch from another host."""

    def test_found(self) -> None:
        """Scripts, style sheets, fonts and pictures of other hosts are found."""
        for text in (
            '<script async src="https://cdn.example/x.js"></script>',
            '<link rel="stylesheet" href="//fonts.example/css">',
            "@import 'https://fonts.example/css';",
            "src:url(https://fonts.example/a.woff2)",
            '<img alt="" src="http://badge.example/b.svg">',
        ):
            self.assertEqual(1, len(site.loaded_from_elsewhere(text)), text)

    def test_links(self) -> None:
        """Links that a reader follows, and files of the site itself, load nothing."""
        for text in (
            '<a href="https://twisted.org/">Twisted</a>',
            '<link rel="canonical" href="https://docs.example/">',
            '<script src="assets/bundle.js"></script>',
            "src:url(../fonts/a.woff2)",
        ):
            self.assertEqual([], site.loaded_from_elsewhere(text), text)


class GateTests(SynchronousTestCase):
    """Where it is built."""

    def test_ci(self) -> None:
        """CI builds the site, and so does C{make site}; both install the extra first."""
        for name in (".ci/run", "Makefile"):
            text = documents.read(name)
            self.assertIn(" -m tests.site\n", text, name)
            self.assertRegex(text, r"pip install .*\[[a-z,]*docs\]|install_extra [a-z,]*docs\b", name)


class StageTests(SynchronousTestCase):
    """What the site is made of."""

    def test_pages_and_targets(self) -> None:
        """Every page is staged where it stands, and so is a file that a page links to."""
        self.patch(site, "PAGES", Path(self.mktemp()))
        self.assertEqual([], site.stage())

        for page in documents.pages():
            self.assertTrue((site.PAGES / page.relative_to(documents.ROOT)).exists(), page.name)
        self.assertTrue((site.PAGES / "etc" / "webhookrx.yaml").exists())

    def test_missing(self) -> None:
        """A link to a file of any kind that is missing is reported."""
        page = documents.ROOT / "docs" / "how-to" / "tune.md"
        self.assertEqual(
            ["../../etc/nope.yaml"], site.missing(page, ["../../etc/nope.yaml", "../../etc/webhookrx.yaml"])
        )
