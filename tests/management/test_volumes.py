"""
Tests for L{webhookrx.management.volumes}.
"""

from __future__ import annotations

import shlex

from twisted.trial.unittest import SynchronousTestCase

from webhookrx.management.volumes import volume_argument


class VolumeTests(SynchronousTestCase):
    def test_which_need_one(self) -> None:
        """A file outside of the recommended directory needs its directory; one that is inside needs nothing."""
        for path, argument in (
            ("/etc/webhookrx/tls/key.pem", ""),
            ("/etc/webhookrx/../webhookrx/tls/key.pem", ""),
            ("relative", ""),
            ("/etc/webhookrx-old/key.pem", "--volume /etc/webhookrx-old:/etc/webhookrx-old:ro"),
            ("/etc/webhookrx/../ssl/key.pem", "--volume /etc/ssl:/etc/ssl:ro"),
            ("/srv/tls/key.pem", "--volume /srv/tls:/srv/tls:ro"),
            ("/key.pem", "--volume /key.pem:/key.pem:ro"),
        ):
            self.assertEqual(argument, volume_argument(path), path)

    def test_hostile_paths(self) -> None:
        """A path is one word of a shell, whatever it has, and what separates parts of an argument stays in its part."""
        self.assertEqual(["--volume", "/a b;$(x)'/c:/a b;$(x)'/c:ro"], shlex.split(volume_argument("/a b;$(x)'/c/k")))
        for path, words in (
            ("/a:b/k", "type=bind,source=/a:b,target=/a:b,readonly"),
            ('/a:b,"c/k', 'type=bind,"source=/a:b,""c","target=/a:b,""c",readonly'),
        ):
            self.assertEqual(["--mount", words], shlex.split(volume_argument(path)))
