"""
Tests for L{webhookrx.config.guards.of_source} and L{webhookrx.config.guards.resolve}, with the sources that they guard.
"""

from __future__ import annotations

import os

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.config.guards.cases import SECRET, GuardCase
from tests.config.starting import LOOPBACK, start
from webhookrx.guard.quota import SourceQuota
from webhookrx.intake.token_places import AUTHORIZATION, TokenPlace
from webhookrx.intake.tokens import NamedToken
from webhookrx.senders.signatures.named_secrets import NamedSecret
from webhookrx.settings import GuardSettings

DEMO_PEM = """
id: demo-pem
vendor: demo
product: pem
when: {headers: {x-demo-event: '*'}}
verify: {at: 'header:x-demo-signature', algorithm: rsa-sha256, encoding: base64, key: pem}
"""

PUBLIC_KEY = (
    rsa.generate_private_key(65537, 2048)
    .public_key()
    .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    .decode()
)


class ReadGuardTests(GuardCase):
    """
    Tests for L{read_guard}.
    """

    def test_plain_source(self) -> None:
        """A source with none of these options has no guard, nor has one whose options all say no."""
        self.assertIsNone(self.guard("paths: /a"))
        self.assertIsNone(self.guard("split: no\nidempotency: off\nhandshake: no"))

    def test_values(self) -> None:
        """Each option arrives in the guard of its source."""
        tokens = self.write("tokens", "edge = t0ken\nsha256:" + "ab" * 32 + "\n")
        guard = self.guard(
            f"""
            sender: demo
            secrets_file: {self.secrets}
            verify: note
            split: lines
            idempotency: 24h
            quota: {{messages: 100/s, per: token}}
            allow: [192.0.2.0/24, 2001:db8::1]
            auth_token_file: {tokens}
            auth_token_in: query:token
            """
        )
        assert guard is not None and guard.sender is not None
        self.assertEqual("demo", guard.sender.id)
        self.assertEqual((NamedSecret("one", SECRET.encode()),), guard.secrets)
        self.assertEqual(
            ("note", False, "lines", 86400.0), (guard.verify, guard.handshake, guard.split, guard.idempotency)
        )
        self.assertEqual(SourceQuota(100.0, per="token"), guard.quota)
        self.assertEqual({"192.0.2.0/24": ("192.0.2.0/24",), "2001:db8::1": ("2001:db8::1/128",)}, guard.allow)
        self.assertEqual((NamedToken("edge", b"t0ken"), NamedToken("2", sha256=b"\xab" * 32)), guard.tokens)
        self.assertEqual(TokenPlace("query", "token"), guard.token_place)
        for secret in (SECRET, "t0ken"):
            self.assertNotIn(secret, repr(guard))

    def test_public_url(self) -> None:
        """It is for senders that sign it; as a default for all sources, others need not."""
        guard = self.guard(f"sender: demo-urls\nsecrets_file: {self.secrets}\npublic_url: https://logs.example.net")
        assert guard is not None
        self.assertEqual("https://logs.example.net", guard.public_url)
        problem = "public_url: It has no effect: this sender does not sign the URL that it sends to. Leave it out."
        signing, other = (
            f"- {{name: {name}, paths: /{name}, sender: {name}, secrets_file: {self.secrets}}}\n"
            for name in ("demo-urls", "demo")
        )
        own = other.replace("}\n", ", public_url: 'https://a'}\n")
        default = "public_url: https://b\nsources:\n"
        self.assertEqual([], self.errors(f"{default}{signing}{other}"))
        for text in (
            "sender: demo\nverify: off\npublic_url: https://a",
            f"{default}{other}",
            f"{default}{signing}{own}",
        ):
            (found,) = self.errors(text)
            self.assertIn(problem, found)

    def test_sender_decides(self) -> None:
        """What its definition says of verification and questions holds unless the source says otherwise."""
        guard = self.guard(f"sender: demo\nsecrets_file: {self.secrets}")
        assert guard is not None
        self.assertEqual(("required", False), (guard.verify, guard.handshake))
        guard = self.guard("sender: demo\nverify: off")
        assert guard is not None
        self.assertEqual(("off", ()), (guard.verify, guard.secrets))
        guard = self.guard("sender: demo-plain")
        assert guard is not None
        self.assertEqual(("off", False), (guard.verify, guard.handshake))
        guard = self.guard("sender: demo-asks")
        assert guard is not None
        self.assertEqual(("off", True), (guard.verify, guard.handshake))
        guard = self.guard("sender: demo-asks\nhandshake: no")
        assert guard is not None
        self.assertFalse(guard.handshake)

    def test_settings_of_senders(self) -> None:
        """Settings have the kinds that the definition names."""
        guard = self.guard("sender: demo-settings\nsender_settings: {topics: [a, b], confirm: on, audience: c}")
        assert guard is not None
        self.assertEqual({"topics": ("a", "b"), "confirm": True, "audience": "c"}, guard.sender_settings)
        guard = self.guard("sender: demo-settings\nsender_settings: {topics: a}")
        assert guard is not None
        self.assertEqual({"topics": ("a",)}, guard.sender_settings)

    def test_built_in(self) -> None:
        """Definitions of the package are known without a directory of one's own."""
        (source,) = start(port=LOOPBACK, sender="github", verify="off").settings.sources
        assert source.guard is not None and source.guard.sender is not None
        self.assertEqual("github", source.guard.sender.id)

    def test_several_files(self) -> None:
        """Secrets of several files are one list, in the order of the files."""
        other = self.write("other", "# the next one\ntwo = x\n")
        guard = self.guard(f"sender: demo\nsecrets_file: [{self.secrets}, {other}]")
        assert guard is not None
        self.assertEqual(["one", "two"], [secret.name for secret in guard.secrets])

    def test_tokens(self) -> None:
        """Tokens with names need a guard; without, they are the source's own as ever."""
        plain = self.write("plain", "a\nb\na\n")
        (source,) = self.start(f"auth_token_file: {plain}").settings.sources
        self.assertEqual(((b"a", b"b"), None), (source.auth_tokens, source.guard))
        named = self.write("named", "a\nnext = b\n")
        (source,) = self.start(f"auth_token_file: [{plain}, {named}]").settings.sources
        assert source.guard is not None
        self.assertEqual((), source.auth_tokens)
        names = ["plain:1", "plain:2", "plain:3", "named:1", "next"]
        self.assertEqual(names, [token.name for token in source.guard.tokens])
        self.assertEqual(AUTHORIZATION, source.guard.token_place)

    def test_names_of_tokens(self) -> None:
        """Tokens without a name are told apart: by their line alone in one file, else by file and line."""
        first, second = (os.path.join(self.directory, name) for name in ("a", "b"))
        for directory in (first, second):
            os.mkdir(directory)
        one, two = (self.write(os.path.join(directory, "t"), "x = y\nz\n") for directory in (first, second))
        for text, names in (
            (f"auth_token_file: {one}", ["x", "2"]),
            (f"auth_token_file: {one}\nauth_token: other", ["1", "x", "t:2"]),
            (f"auth_token_file: [{one}, {two}]", ["x", f"{one}:2", "x", f"{two}:2"]),
        ):
            guard = self.guard(text)
            assert guard is not None
            self.assertEqual(names, [token.name for token in guard.tokens])

    def test_basic(self) -> None:
        """Basic credentials are lines of a token file."""
        tokens = self.write("tokens", "shop = me:pass word\n")
        guard = self.guard(f"auth_token_file: {tokens}\nauth_token_in: basic")
        assert guard is not None
        self.assertEqual((NamedToken("shop", b"me:pass word"),), guard.tokens)

    def test_networks(self) -> None:
        """A named list is a file, with one network a line or with a place in a JSON document; a change is seen."""
        lines = self.write("lines", "192.0.2.0/24 # ours\n\n2001:db8::/32\n")
        document = self.write("meta.json", '{"hooks": ["198.51.100.0/24"]}')
        resolved = self.start(
            f"networks: {{office: {lines}, github: {{file: {document}, at: /hooks}}}}\n"
            "allow: [github, office, 10.0.0.1]"
        )
        (source,) = resolved.settings.sources
        expected = {
            "github": ("198.51.100.0/24",),
            "office": ("192.0.2.0/24", "2001:db8::/32"),
            "10.0.0.1": ("10.0.0.1/32",),
        }
        self.assertEqual(GuardSettings(allow=expected), source.guard)
        self.assertEqual({lines, document}, set(resolved.settings.watched))

    def test_watched(self) -> None:
        """Files of secrets and tokens are watched, and keys that they name; tokens of plain sources are not."""
        tokens = self.write("tokens", "a\n")
        self.write("senders/demo-pem.yaml", DEMO_PEM)
        key = self.write("key.pem", PUBLIC_KEY)
        keys = self.write("keys", f"one = @{key}\n")
        text = f"sender: demo-pem\nsecrets_file: {keys}\nauth_token_file: {tokens}"
        self.assertEqual({keys, key, tokens}, set(self.start(text).settings.watched))
        self.assertEqual({}, self.start(f"auth_token_file: {tokens}").settings.watched)

    def test_command_line(self) -> None:
        """The command line has the same options."""
        lines = self.write("lines", "192.0.2.0/24\n")
        document = self.write("meta.json", '["198.51.100.0/24"]')
        (source,) = start(
            port=LOOPBACK,
            senders=self.senders,
            sender="demo-settings",
            sender_setting=["topics=a", "topics=b"],
            handshake="no",
            quota="messages=1/s,per=address",
            network=[f"a={lines}", f"b={document}#"],
            allow=["a", "b"],
        ).settings.sources
        assert source.guard is not None
        self.assertEqual({"topics": ("a", "b")}, source.guard.sender_settings)
        self.assertEqual({"a": ("192.0.2.0/24",), "b": ("198.51.100.0/24",)}, source.guard.allow)
        self.assertEqual(SourceQuota(1.0, per="address"), source.guard.quota)

    def test_two_on_one_path(self) -> None:
        """Two sources may share a port, each with a guard of its own."""
        first, second = self.start(
            f"""
            sources:
            - {{name: a, paths: /a, sender: demo, secrets_file: {self.secrets}}}
            - {{name: b, paths: /b, allow: [192.0.2.0/24]}}
            """
        ).settings.sources
        assert first.guard is not None and second.guard is not None
        self.assertEqual(first.listeners, second.listeners)
        self.assertEqual((1, 0), (len(first.guard.secrets), len(second.guard.secrets)))

    def test_hidden(self) -> None:
        """Of two sources at one path the first decides, whatever guards they have; that the other is hidden is said."""
        text = f"""
            sources:
            - {{name: a, paths: /hook, sender: demo, secrets_file: {self.secrets}}}
            - {{name: b, paths: /hook, allow: [192.0.2.0/24]}}
            """
        (warning,) = self.warnings(text)
        self.assertRegex(warning, r"5: sources\[1\]\.paths: \"/hook\" is hidden by pattern 1")

    def test_top_level(self) -> None:
        """An option about senders at the top is the default of sources with a sender, and nothing to the others."""
        first, second = self.start(
            f"""
            verify: note
            sources:
            - {{name: a, paths: /a, sender: demo, secrets_file: {self.secrets}}}
            - {{name: b, paths: /b}}
            """
        ).settings.sources
        assert first.guard is not None
        self.assertEqual(("note", None), (first.guard.verify, second.guard))


#: Lines of a configuration, and what is wrong with them. S, P, T, E and F are files.
BAD = (
    ("sender: gihtub", '3: sender: There is no sender "gihtub", here or in --senders. Did you mean "github"?'),
    ("sender: demo2", '3: sender: There is no sender "demo2", here or in --senders. Did you mean "demo"?'),
    ("sender: ../demo", '3: sender: There is no sender "../demo", here or in --senders. Did you mean "demo"?'),
    (
        "sender: demo",
        "3: sender: There is no secret to check requests with. So nothing can be verified; give secrets_file",
    ),
    ("sender: demo\nverify: note", "3: sender: There is no secret to check requests with."),
    ("sender: demo\nsecrets_file: /no/such", '4: secrets_file: "/no/such" does not exist.'),
    ("sender: demo\nsecrets_file: c4nary", "4: secrets_file: There is no such file; it takes the name of a file with"),
    ("sender: demo\nsecrets_file: whsec_c4nary/x==", "and never a secret itself."),
    ("sender: demo\nsecrets_file: E", '4: secrets_file: "empty": There is no secret in it.'),
    (
        "sender: demo\nsecrets_file: [S, P]",
        '4: secrets_file: "pair", line 2: "secrets", line 1 has a secret of the same name',
    ),
    (
        "sender: demo-base64\nsecrets_file: S",
        '4: secrets_file: "secrets", line 1: no key can be made of it: ',
    ),
    ("sender: demo-plain\nsecrets_file: S", "4: secrets_file: This sender has no secrets"),
    ("sender: demo-plain\nverify: required", "4: verify: Nothing can be verified: the definition"),
    ("sender: demo-plain\nhandshake: yes", "4: handshake: This sender asks nothing"),
    ("sender: demo-plain\nidempotency: 1h", "4: idempotency: Deliveries of this sender have no ids"),
    ("sender: demo-plain\nsplit: yes", '4: split: The definition "demo-plain" has no split; write lines'),
    ("sender: demo\nverify: always\nsecrets_file: S", '4: verify: "always" is not one of required, note, off.'),
    ("sender: demo-urls\nsecrets_file: S", '3: sender: The definition "demo-urls" needs public_url'),
    ("sender: demo-urls\nsecrets_file: S\npublic_url: logs", '5: public_url: "logs" does not begin with https://'),
    (
        "sender: demo-settings",
        '3: sender: "demo-settings" needs "topics" in sender_settings: The topics that may send.',
    ),
    (
        "sender: demo-settings\nsender_settings: {topics: a, topic: b}",
        '4: sender_settings: "topic" is no setting of "demo-settings", which are topics, confirm, audience. Did you',
    ),
    ("sender: demo\nsecrets_file: S\nsender_settings: {a: b}", "of which there are none."),
    ("sender: demo-settings\nsender_settings: {topics: a, confirm: maybe}", '"maybe" is neither yes nor no.'),
    ("sender: demo-settings\nsender_settings: {topics: a, audience: [b, c]}", "It takes one value."),
    (
        "sender: demo-settings\nsender_settings: [topics=a, topics]",
        '"topics" is not of the form NAME=VALUE.',
    ),
    ("handshake: maybe", '3: handshake: "maybe" is neither yes nor no'),
    ("handshake: yes", "3: handshake: It is about a sender, and there is none: give sender, too."),
    ("verify: off", "3: verify: It is about a sender, and there is none"),
    ("split: yes", "3: split: It is about a sender"),
    ("secrets_file: S", "3: secrets_file: It is about a sender"),
    ("idempotency: 1h", "3: idempotency: It is about a sender"),
    ("public_url: https://a", "3: public_url: It is about a sender"),
    ("sender_settings: {a: b}", "3: sender_settings: It is about a sender"),
    ("auth_token_in: query:t", "3: auth_token_in: There is no token: give auth_token_file"),
    ("auth_token_file: T\nauth_token_in: cookie:t", "4: auth_token_in: A token stands at header:authorization"),
    ("auth_token_file: T\nauth_token_in: basic", "It is no user:password, as basic wants it."),
    (
        "auth_token_file: T\nauth_token_in: path:key\npaths: [/a, '/b/(?P<key>.*)']",
        '4: auth_token_in: The path "/a" has no',
    ),
    ("auth_token_file: F", '3: auth_token_file: "faulty": Line 2: the value of a is empty.'),
    ("sender: demo\nsecrets_file: S\nidempotency: long", "5: idempotency: 'long' is not a duration"),
    ("sender: demo\nsecrets_file: S\nidempotency: 400d", '5: idempotency: "400d" is not sensible; write 1s to 30d'),
    (
        "sender: demo\nsecrets_file: S\nsplit: line",
        '5: split: "line" is not one of no, yes, lines, documents, or a JSON',
    ),
    ("sender: [demo, github]", "3: sender: It takes one value."),
    ("verify: {a: b}", "3: verify: It takes one value."),
    ("secrets_file: []", "3: secrets_file: The list is empty"),
    ("signing_certs: /no/such", '3: signing_certs: "/no/such" does not exist.'),
    ("signing_certs: S", '3: signing_certs: "secrets" has no public key that can be used'),
    ("fetch_keys: maybe", '3: fetch_keys: "maybe" is neither yes nor no'),
    ("sources: [{fetch_keys: yes}]", "3: sources[0].fetch_keys: It holds for the whole service"),
    ("sources: [{networks: {a: N}}]", "3: sources[0].networks: It holds for the whole service"),
    ("senders_: x", 'There is no key "senders_". Did you mean "senders"?'),
    ("quota: {per: token}", "3: quota: A quota needs messages, bytes or both"),
    ("quota: {messages: many/s}", '3: quota: "many/s" is not a rate of messages'),
    ("quota: {messages: 1/s, per: token}", "3: quota: There is no token"),
    ("allow: 192.0.2.1/24", "3: allow: "),
    ("allow: office", '3: allow: There is no list "office" in networks.'),
    ("networks: {office: N}\nallow: ofice", 'Did you mean "office"?'),
    ("networks: {office: /no/such}", '3: networks: "/no/such" does not exist.'),
    ("networks: {office: {file: P, at: /hooks}}", '3: networks: "pair": It is not JSON'),
    ("networks: {office: {fil: P}}", '3: networks.office: There is no key "fil". Did you mean "file"?'),
    ("networks: {office: {at: /a}}", "3: networks.office: It takes a file, such as"),
    ("networks: {1a: P}", '3: networks: "1a" is not the name of a list'),
    ("networks: P", "3: networks: "),
    ("allow_clients: '*.example.net'", "3: allow_clients: On "),
    ("allow_clients: 'a*'", "3: allow_clients: "),
)


class MistakeTests(GuardCase):
    """
    What is wrong with options that do not fit.
    """

    def setUp(self) -> None:
        super().setUp()
        self.files = {
            "S": self.secrets,
            "P": self.write("pair", "# two\none = x\n"),
            "T": self.write("tokens", "t0ken\n"),
            "N": self.write("networks", "::/0\n"),
            "E": self.write("empty", "# nothing yet\n"),
            "F": self.write("faulty", "good\na = \n"),
        }

    def placed(self, text: str) -> str:
        """Return lines with the names of files in place."""
        for letter, path in self.files.items():
            for before, after in ((": ", "\n"), (": ", "}"), (": ", ","), ("[", ","), (" ", "]")):
                text = f"{text}\n".replace(f"{before}{letter}{after}", f"{before}{path}{after}").removesuffix("\n")
        return text

    def test_mistakes(self) -> None:
        """Each is an error with line and option, that says what is allowed and shows no secret."""
        for text, expected in BAD:
            found = self.errors(self.placed(text))
            self.assertTrue(any(expected in each for each in found), f"{text!r}: {found}")
            self.assertNotIn(SECRET, "".join(found))
            self.assertNotIn("t0ken", "".join(found))

    def test_once(self) -> None:
        """One mistake is one line."""
        for text, _ in BAD:
            if "_clients" not in text:
                self.assertEqual(1, len(self.errors(self.placed(text))), text)

    def test_own_definitions(self) -> None:
        """A mistake in a definition of the operator's is one without rules, too."""
        self.write("senders/bad.yaml", "id: bad\nvendor: a\nproduct: b\nwhen: {header: {}}\n")
        self.assertIn('"header"', "".join(self.errors("")))

    def test_unused_definitions(self) -> None:
        """Definitions that no source needs are probably not meant."""
        self.assertIn("not used without --rules, or a source with a sender", "".join(self.warnings("paths: /a")))
        self.assertEqual([], self.warnings("sender: demo-plain"))

    def test_open_files(self) -> None:
        """A file of secrets that every user can read is a warning, as one of tokens is."""
        os.chmod(self.secrets, 0o644)
        (warning,) = self.warnings(f"sender: demo\nsecrets_file: {self.secrets}")
        self.assertIn('"secrets" can be read or written by every user: chmod 640 or less.', warning)
        (error,) = self.errors(f"sender: demo-base64\nsecrets_file: {self.secrets}")
        self.assertIn("no key can be made of it", error)

    def test_doubtful_secrets(self) -> None:
        """A secret that is hardly meant as it is read is a warning with its line; a file in UTF-16 is an error."""
        doubtful = self.write("doubtful", f"one = {SECRET}\ntwo={SECRET}\n")
        (warning,) = self.warnings(f"sender: demo\nsecrets_file: {doubtful}")
        self.assertIn('x.yaml:4: secrets_file: "doubtful", line 2: The whole line is taken for the secret.', warning)
        self.assertNotIn(SECRET, warning)
        with open(doubtful, "wb") as file:
            file.write(f"one = {SECRET}\n".encode("utf-16"))
        (error,) = self.errors(f"sender: demo\nsecrets_file: {doubtful}")
        self.assertIn('"doubtful" is in UTF-16; write it in UTF-8.', error)

    def test_doubtful_tokens(self) -> None:
        """A token that looks as if it had a name is a warning; padding of Base64 is no sign of one."""
        tokens = self.write("doubtful", "edge = t0ken\nb3RoZXI=\nother=t0ken\n")
        (warning,) = (each for each in self.warnings(f"auth_token_file: {tokens}") if "line 3" in each)
        self.assertIn('x.yaml:3: auth_token_file: "doubtful", line 3: The whole line is taken for the token.', warning)
        self.assertNotIn("t0ken", warning)

    def test_setting_that_a_verifier_needs(self) -> None:
        """A setting that is missing is said once, and not as a lack of secrets, too."""
        (error,) = self.errors("sender: paypal\nfetch_keys: yes")
        self.assertIn('3: sender: "paypal" needs "webhook_id" in sender_settings', error)

    def test_several_forms(self) -> None:
        """A secret that no scheme can use is told with all forms that one could have."""
        (error,) = self.errors(f"sender: standard-webhooks\nsecrets_file: {self.secrets}")
        for form in ("whsec_", "whpk_"):
            self.assertIn(f"is not Base64 behind {form}.", error)

    def test_key_in_place(self) -> None:
        """A key in PEM that stands among the secrets itself is told to be a file of its own."""
        pasted = self.write("pasted", "wise = -----BEGIN PUBLIC KEY-----\n")
        (error,) = self.errors(f"sender: wise\nsecrets_file: {pasted}")
        self.assertIn("is a file of its own, as NAME = @FILE.", error)

    def test_quota_that_loses(self) -> None:
        """A quota for a sender that does not send again after 429 is a warning."""
        for name, warned in (("demo-once", 1), ("demo-by-status", 1), ("demo-always", 0), ("demo-plain", 0)):
            warnings = self.warnings(f"sender: {name}\nquota: {{messages: 1/s}}")
            self.assertEqual(warned, len(warnings), name)
            if warned:
                self.assertIn(f"x.yaml:4: quota: {name} does not send again what a quota refuses with 429", warnings[0])
            self.assertEqual([], self.warnings(f"sender: {name}"))

    def test_state_directory(self) -> None:
        """Deliveries are kept in the state directory; without one, a restart forgets them, and that is a warning."""
        state = os.path.join(self.directory, "state")
        text = "sender: demo\nverify: off\nidempotency: 24h"
        resolved = self.start(f"{text}\nstate_dir: {state}")
        self.assertEqual((state, ()), (resolved.settings.state_dir, resolved.settings.warnings))
        (warning,) = self.warnings(text)
        self.assertIn("Without a state directory", warning)
        self.assertIsNone(self.start(text).settings.state_dir)
        os.mkdir(state)
        under_systemd = start({"STATE_DIRECTORY": state}, config=self.config(text)).settings
        self.assertEqual((state, ()), (under_systemd.state_dir, under_systemd.warnings))
        (warning,) = self.warnings(f"paths: /a\nverify: off\nsender: demo\nstate_dir: {state}")
        self.assertIn("state_dir: It is not used without --rules, or a source with idempotency.", warning)
        self.assertIn("state_dir: ", "".join(self.errors(f"{text}\nstate_dir: /dev/null/x")))

    def test_unused_secrets(self) -> None:
        """Secrets of a source that verifies nothing are probably not meant, unless questions are answered with them."""
        (warning,) = self.warnings(f"sender: demo\nverify: off\nsecrets_file: {self.secrets}")
        self.assertIn("x.yaml:5: secrets_file: The secrets are not used: verify is off.", warning)
        tokens = self.write("verify-tokens", "verify-token = x\n")
        told = self.warnings(f"sender: demo-asks\nsecrets_file: {tokens}")
        self.assertNotIn("not used", "".join(told))

    def test_verify_token(self) -> None:
        """A sender that asks with a verify token is refused without a secret of this name, which is said."""
        tokens = self.write("verify-tokens", "verify-token = x\n")
        (warning,) = self.warnings("sender: demo-asks")
        self.assertIn("No secret has the name verify-token", warning)
        (warning,) = self.warnings(f"sender: demo-asks\nsecrets_file: {tokens}")
        self.assertIn("Secrets of the sender travel over plain HTTP", warning)

    def test_in_the_open(self) -> None:
        """What requests show must not travel in the open; a signature may."""
        away = "tcp:0"
        for text in (
            "sender: demo-tokens\nsecrets_file: S",
            "auth_token_file: T\nauth_token_in: query:t",
        ):
            (found,) = self.errors(self.placed(text), away)
            self.assertIn('would travel over plain HTTP to "tcp:0"', found)
            self.assertEqual([], self.errors(self.placed(f"{text}\nallow_plaintext_token: yes"), away))
            self.assertIn("only this machine can reach it", "".join(self.warnings(self.placed(text))))
        self.assertEqual([], self.errors(self.placed("sender: demo\nsecrets_file: S"), away))
        self.assertEqual([], self.errors(self.placed("sender: demo-tokens\nverify: off"), away))

    def test_no_secret_anywhere(self) -> None:
        """Neither settings nor what is shown of them hold a secret or a token."""
        resolved = self.start(self.placed("sender: demo\nsecrets_file: S\nauth_token_file: T\nauth_token_in: query:t"))
        for secret in (SECRET, "t0ken"):
            self.assertNotIn(secret, repr(resolved))
        shown = {row.name: row.value for row in resolved.effective if row.section}
        self.assertEqual(self.secrets, shown["secrets-file"])
        self.assertEqual(
            ("demo", "required", "no", "query:t"),
            tuple(shown[name] for name in ("sender", "verify", "handshake", "auth-token-in")),
        )
