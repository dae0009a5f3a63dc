"""
Tests for C{webhookrx try --config}.
"""

from __future__ import annotations

import base64
import hmac
import json
import os
import shlex
import subprocess
import sys
from typing import Any
from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from tests.commands.running import CommandCase, Ran, run_command
from tests.system.certificates import CLIENT, Authority, certificates_pem, server_settings, write_ca_file

SECRET = "s3cr3t-of-the-sender"
CONFIG = """\
    port: 8181
    allow_plaintext_token: yes
    sources:
      - name: github
        source: webhook-json
        paths: /github/(?P<HOST>.*)
        prefix: github.
        sender: github
        secrets_file: secrets
        idempotency: 24h
        allow: [192.0.2.0/24]
      - {name: stripe, paths: /stripe, sender: stripe, secrets_file: secrets}
      - {name: zoom, paths: /zoom, sender: zoom, secrets_file: secrets}
      - {name: gitlab, paths: /gitlab, sender: gitlab, secrets_file: secrets}
      - {name: meraki, paths: /meraki, sender: meraki, secrets_file: secrets}
      - {name: note, paths: /note, sender: github, secrets_file: secrets, verify: note}
      - name: batch
        source: webhook-json
        paths: /batch
        auth_token_file: tokens
        auth_token_in: query:key
        split: /*
      - {name: hidden, paths: "/hook/(?P<key>[^/]+)", auth_token_file: tokens, auth_token_in: "path:key"}
      - {name: plain, paths: /plain, source: webhook-json, on_parse_error: reject, auth_token: plain-token}
      - {name: apart, port: 8182, paths: /zoom}
"""
PUSH = 'POST /github/web-1 HTTP/1.1\nX-GitHub-Event: push\nX-GitHub-Delivery: d-1\n\n{"ref":"main"}'
CHECK = 'POST /zoom HTTP/1.1\n\n{"event":"endpoint.url_validation","payload":{"plainToken":"abc"}}'
EVENT = 'POST /stripe HTTP/1.1\n\n{"id":"evt_1"}'


#: Runs the command, and writes each event of the interpreter that opens or changes something.
_WATCHED = """
import os, sys
seen = []
CHANGES = ("socket.", "subprocess.", "sqlite3.", "shutil.", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link",
           "os.symlink", "os.truncate", "os.chmod", "os.chown", "os.fork", "os.exec", "os.posix_spawn", "os.system",
           "os.utime", "os.mkfifo", "tempfile.", "urllib.", "ftplib.", "http.")
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
def hook(event, args):
    if event == "open" and (args[2] & WRITES if isinstance(args[2], int) else 0):
        seen.append((event, args[0]))
    elif event.startswith(CHANGES):
        seen.append((event, args))
from webhookrx.commands.main import main
sys.addaudithook(hook)
status = main(sys.argv[1:])
print(seen, file=sys.stderr)
sys.exit(status)
"""


class TryConfigTests(CommandCase):
    """A recorded request through the sources of a configuration."""

    def setUp(self) -> None:
        super().setUp()
        self.write("config.yaml", CONFIG)
        self.write("secrets", f"main = {SECRET}\nold = another-{SECRET}\n")
        self.write("tokens", f"ci = {SECRET}\n")
        for name in ("secrets", "tokens"):
            os.chmod(name, 0o600)

    def run_try(self, request: str | bytes, *arguments: str) -> Ran:
        """Run it on a request; no secret is ever printed."""
        given = (self.write("request.http", request), "--config", "config.yaml")
        ran = run_command("try", *given, *arguments)
        self.assertNotIn(SECRET, ran.out + ran.err)
        return ran

    def facts(self, request: str | bytes, *arguments: str) -> tuple[int, dict[str, Any]]:
        status, out, err = self.run_try(request, *arguments, "--json")
        self.assertEqual("", err)
        return status, json.loads(out)

    def verdicts(self, request: str | bytes, *arguments: str) -> dict[str, str]:
        """Return the verdict of each decision."""
        _, facts = self.facts(request, *arguments)
        return {each["decision"]: each["verdict"] for each in facts["decisions"]}

    def test_header_of_a_signature(self) -> None:
        """What is missing is told apart from what is there twice, or is no signature."""
        signature = "X-Hub-Signature-256: abc\n"
        for count, words in enumerate(("is not there.", "is there once: it is not of the form", "more than once.")):
            request = PUSH.replace("\n\n", f"\n{signature * count}\n")
            _, facts = self.facts(request, "--peer", "192.0.2.7")
            self.assertIn(words, facts["decisions"][-1]["why"])

    def test_url(self) -> None:
        """A signature over another URL is told with the public_url that it would be right for, when that is near."""
        config = "sources: [{name: square, paths: /sq, sender: square, secrets_file: secrets, public_url: 'URL'}]\n"
        self.write("config.yaml", config.replace("URL", "https://logs.example:8443"))
        for host, told in (
            ("logs.example", 'It is right for the public_url "https://logs.example", which is'),
            ("logs.example:8443", None),
            ("hooks.example", "This sender signs the URL, too: public_url is"),
        ):
            code = hmac.digest(SECRET.encode(), f"https://{host}/sq{{}}".encode(), "sha256")
            signature = base64.b64encode(code).decode()
            _, facts = self.facts(f"POST /sq HTTP/1.1\nX-Square-HmacSha256-Signature: {signature}\n\n{{}}")
            why = next(each["why"] for each in facts["decisions"] if each["decision"] == "signature")
            self.assertIn(told or "signed with the secret", why)
            self.assertNotIn(signature, why)
        request = f"POST /sq HTTP/1.1\nHost: hooks.example\nX-Square-HmacSha256-Signature: {signature}\n\n{{}}"
        _, facts = self.facts(request)
        self.assertIn('It is right for the public_url "https://hooks.example"', facts["decisions"][-1]["why"])

    def test_stored(self) -> None:
        """Each decision is told with why, the answer byte for byte, and the message as it would be written."""
        arguments = ("--sign", "main", "--peer", "192.0.2.7", "--at", "2026-11-20T12:00:00Z")
        status, out, err = self.run_try(PUSH, *arguments)
        self.assertEqual((0, ""), (status, err))
        head, decisions, outcome, answer, received, message = out.rstrip("\n").split("\n\n")
        self.assertEqual(
            "request    POST /github/web-1, 14 bytes\n"
            "source     github (webhook-json), endpoint 8181\n"
            "time       2026-11-20T12:00:00Z",
            head,
        )
        self.assertEqual(
            [
                "decisions",
                "  sizes        passes      a target of 13 bytes, 4 headers",
                "  path         passes      /github/(?P<HOST>.*)",
                "  address      passes      192.0.2.7 is in 192.0.2.0/24",
                "  method       passes      POST",
                "  values       passes      HOST=web-1",
                "  length       passes      14 bytes of at most 10,485,760",
                '  signature    passes      hmac-sha256 at header:x-hub-signature-256: signed with the secret "main"',
                '  delivery     passes      "d-1"',
                '  idempotency  not judged  whether "d-1" was stored before is not looked up',
                "  payload      passes      it can be read",
            ],
            decisions.splitlines(),
        )
        self.assertEqual("outcome    it would be stored: 1 message", outcome)
        self.assertEqual(
            "answer\nHTTP/1.1 200 OK\nServer: webhookrx\nDate: Fri, 20 Nov 2026 12:00:00 GMT\n"
            "Content-Type: application/json\nX-Content-Type-Options: nosniff\nContent-Length: 21",
            answer,
        )
        self.assertEqual('{"status":"received"}', received)
        values = json.loads(message.removeprefix("message\n"))
        self.assertEqual(
            ("web-1", "main", "signature", "main", "d-1", "192.0.2.7", "2026-11-20T12:00:00.000000+00:00"),
            (
                values["HOST"],
                values["github.ref"],
                values["webhook.verified"],
                values["webhook.secret"],
                values["webhook.delivery_id"],
                values["SOURCEIP"],
                values["ISODATE"],
            ),
        )

    def test_json(self) -> None:
        """In JSON it is one object."""
        status, facts = self.facts(PUSH, "--sign", "old", "--peer", "192.0.2.7", "--at", "2026-11-20T12:00:00Z")
        self.assertEqual((0, "stored", True, ""), (status, facts["outcome"], facts["stored"], facts["reason"]))
        self.assertEqual(
            {"name": "github", "variant": "webhook-json", "endpoint": "8181"},
            {name: facts["source"][name] for name in ("name", "variant", "endpoint")},
        )
        self.assertEqual({"at": "2026-11-20T12:00:00Z", "is_signed_time": False}, facts["time"])
        self.assertEqual(200, facts["answer"]["status"])
        self.assertTrue(facts["answer"]["bytes"].startswith("HTTP/1.1 200 OK\r\n"))
        (message,) = facts["messages"]
        self.assertEqual("old", message["webhook.secret"])

    def test_refused(self) -> None:
        """What would be refused is told with the decision that refuses it, its reason and its answer."""
        signed = ("--sign", "main")
        cases: list[tuple[str, tuple[str, ...], str, int, str]] = [
            (PUSH, ("--peer", "192.0.3.1", *signed), "address", 403, "address_not_allowed"),
            (PUSH, ("--peer", "192.0.2.1"), "signature", 401, "signature_missing"),
            (
                PUSH.replace("push", f"push\nX-Hub-Signature-256: sha256={'0' * 64}"),
                (),
                "signature",
                401,
                "bad_signature",
            ),
            (PUSH.replace("POST", "PUT"), signed, "method", 405, "method_not_allowed"),
            (PUSH.replace("web-1", "%ff"), signed, "values", 400, "bad_encoding"),
            (PUSH.replace("web-1", "x" * 9000), signed, "sizes", 414, "target_too_long"),
            ("POST /batch?key=wrong HTTP/1.1\n\n[]", (), "token", 403, "bad_token"),
            ("POST /hook/wrong HTTP/1.1\n\nx", (), "token", 403, "bad_token"),
            ("POST /plain HTTP/1.1\n\n{}", (), "token", 403, "bad_token"),
            ("POST /plain HTTP/1.1\nAuthorization: Bearer plain-token\n\nx", (), "payload", 400, "bad_payload"),
            (
                f"POST /plain HTTP/1.1\nAuthorization: Bearer plain-token\n\n{'x' * 10485761}",
                (),
                "length",
                413,
                "body_too_large",
            ),
        ]
        for request, arguments, decision, code, reason in cases:
            status, facts = self.facts(request, *arguments)
            self.assertEqual((1, "refused", reason), (status, facts["outcome"], facts["reason"]), request[:60])
            last = facts["decisions"][-1]
            self.assertEqual((decision, "refuses"), (last["decision"], last["verdict"]))
            self.assertEqual(code, facts["answer"]["status"])
            self.assertIn(f'"reason":"{reason}"', facts["answer"]["bytes"])
            self.assertEqual([], facts["messages"])

    def test_no_path(self) -> None:
        """A path that nothing takes is refused; one that may hold a token is not shown."""
        status, facts = self.facts(f"POST /hok/{SECRET} HTTP/1.1\n\nx")
        self.assertEqual((1, "no_matching_path", "/***"), (status, facts["reason"], facts["request"]["target"]))
        status, out, _ = self.run_try(f"POST /hok/{SECRET} HTTP/1.1\n\nx")
        self.assertEqual(1, status)
        self.assertIn("outcome    it would be refused: 404 no_matching_path", out)

    def test_handshake(self) -> None:
        """A question is answered with its own exit status, and is no message."""
        status, out, _ = self.run_try(CHECK, "--port", "8181", "--sign", "main")
        self.assertEqual(3, status)
        self.assertIn("signed question  answers  the question url_validation\n", out)
        self.assertIn('{"plainToken":"abc","encryptedToken":"', out)
        self.assertNotIn("\nmessage", out)
        status, facts = self.facts(CHECK, "--port", "8181", "--sign", "main")
        self.assertEqual((3, "handshake", False, []), (status, facts["outcome"], facts["stored"], facts["messages"]))
        self.assertEqual(1, self.run_try(CHECK, "--port", "8181").status)

    def test_choice(self) -> None:
        """Of several sources that take a path, one is chosen by its name or its port."""
        status, out, err = self.run_try(CHECK)
        self.assertEqual((2, ""), (status, out))
        self.assertIn('"zoom" at 8181, "apart" at 8182. Choose one with --source or --port.', err)
        for arguments in (("--source", "apart"), ("--port", "8182")):
            status, facts = self.facts(CHECK, *arguments)
            self.assertEqual((0, "apart"), (status, facts["source"]["name"]))
        for arguments, problem in (
            (("--source", "zom"), 'There is no source "zom". Did you mean "zoom"?'),
            (("--port", "1"), "No endpoint has the port 1."),
            (("--source", "zoom", "--port", "8182"), 'No endpoint of the source "zoom" has the port 8182.'),
        ):
            status, out, err = self.run_try(CHECK, *arguments)
            self.assertEqual((2, ""), (status, out))
            self.assertIn(problem, err)

    def test_before(self) -> None:
        """A source whose path another one takes first is told so."""
        self.write("config.yaml", CONFIG + '      - {name: late, paths: "/st.*"}\n')
        status, _, err = self.run_try(EVENT, "--source", "late")
        self.assertEqual(2, status)
        self.assertIn('At 8181 the source "stripe" takes this path, which comes before "late".', err)
        self.assertEqual(0, self.run_try(EVENT.replace("stripe", "strange"), "--source", "late").status)

    def test_signed_time(self) -> None:
        """The time is when the request was signed, which is said, unless --at gives another."""
        ran = self.run_try(EVENT, "--sign", "main", "--at", "2026-01-02T03:04:05Z", "--curl")
        words = shlex.split(ran.out)
        signature = next(word for word in words if word.startswith("stripe-signature: "))
        signed = EVENT.replace("HTTP/1.1\n", f"HTTP/1.1\n{signature}\n")
        status, out, _ = self.run_try(signed)
        self.assertEqual(0, status)
        self.assertIn("\ntime       2026-01-02T03:04:05Z, when it was signed; --at tries another time\n", out)
        self.assertIn("Date: Fri, 02 Jan 2026 03:04:05 GMT\n", out)
        for at, expected in (("2026-01-02T03:09:05Z", 0), ("2026-01-02T03:09:06Z", 1), ("2026-01-02T02:59:04Z", 1)):
            status, facts = self.facts(signed, "--at", at)
            self.assertEqual((expected, at), (status, facts["time"]["at"]))
        _, facts = self.facts(signed, "--at", "2026-01-02T03:10:00Z")
        self.assertEqual("stale_signature", facts["reason"])
        self.assertIn("signed 355 s before the time of the trial", facts["decisions"][-1]["why"])

    def test_batch(self) -> None:
        """Each event is a message; the token is told by its name alone."""
        status, facts = self.facts(f'POST /batch?key={SECRET}&a=b HTTP/1.1\n\n[{{"n":1}},{{"n":2}}]')
        self.assertEqual((0, "/batch?key=***&a=b"), (status, facts["request"]["target"]))
        self.assertEqual([1, 2], [each["webhook.batch.index"] for each in facts["messages"]])
        self.assertEqual(
            {("b", "ci")}, {(each["webhook.query.a"], each["webhook.token"]) for each in facts["messages"]}
        )
        self.assertIn('"ci" at query:key', facts["decisions"][3]["why"])
        status, facts = self.facts(f"POST /batch?key={SECRET} HTTP/1.1\n\n[]")
        self.assertEqual((0, "stored", []), (status, facts["outcome"], facts["messages"]))

    def test_token_in_path(self) -> None:
        """A token in the path is shown nowhere, and is no value of the message."""
        status, facts = self.facts(f"POST /hook/{SECRET} HTTP/1.1\n\nx")
        self.assertEqual((0, "/hook/***"), (status, facts["request"]["target"]))
        self.assertNotIn("key", facts["messages"][0])

    def test_noted(self) -> None:
        """With C{verify: note} a request that is not verified is taken, which is told."""
        status, facts = self.facts(PUSH.replace("/github/web-1", "/note"))
        self.assertEqual((0, "no"), (status, facts["messages"][0]["webhook.verified"]))
        why = next(each["why"] for each in facts["decisions"] if each["decision"] == "signature")
        self.assertIn("not verified, which is noted", why)

    def test_recording(self) -> None:
        """What a recording masks is taken to be right, and told as not judged."""
        for request in (
            "POST /batch?key=*** HTTP/1.1\n\n[]",
            "POST /hook/*** HTTP/1.1\n\nx",
            "POST /plain HTTP/1.1\nAuthorization: ***\n\n{}",
            "POST /gitlab HTTP/1.1\nX-Gitlab-Event: Push Hook\nX-Gitlab-Token: ***\n\n{}",
            'POST /meraki HTTP/1.1\n\n{"sharedSecret":"***"}',
        ):
            status, facts = self.facts(request)
            self.assertEqual(0, status, request)
            self.assertIn("not judged", [each["verdict"] for each in facts["decisions"]])

    def test_masked_secret(self) -> None:
        """A secret in the head that a recording masks is not judged, and is not told to be wrong, too."""
        verdicts = self.verdicts("POST /gitlab HTTP/1.1\nX-Gitlab-Event: Push Hook\nX-Gitlab-Token: ***\n\n{}")
        self.assertEqual("not judged", verdicts["secret"])
        self.assertNotIn("signature", verdicts)

    def test_secret_in_body(self) -> None:
        """A secret that the body shows is told by its name, and is in no message; nor in a command line for curl."""
        request = f'POST /meraki HTTP/1.1\n\n{{"sharedSecret":"{SECRET}","n":1}}'
        status, facts = self.facts(request)
        self.assertEqual((0, "stored"), (status, facts["outcome"]))
        (message,) = facts["messages"]
        self.assertEqual(('{"sharedSecret":"***","n":1}', "main"), (message["MESSAGE"], message["webhook.secret"]))
        status, out, _ = self.run_try(request)
        self.assertEqual(0, status)
        self.assertIn("what the body shows of it goes on as ***", out)
        _, out, err = self.run_try(request, "--curl")
        self.assertIn(base64.b64encode(b'{"sharedSecret":"***","n":1}').decode(), out)
        self.assertIn("It is without the secret in the body", err)
        status, out, err = self.run_try(f"POST /meraki HTTP/1.1\n\n{{'sharedSecret':'{SECRET}'}}", "--curl")
        self.assertEqual((2, ""), (status, out))
        self.assertIn("not strict JSON", err)

    def test_unknown_address(self) -> None:
        """Without an address the allow-list is not judged."""
        self.assertEqual("not judged", self.verdicts(PUSH, "--sign", "main")["address"])
        self.assertEqual("passes", self.verdicts(PUSH, "--sign", "main", "--peer", "::ffff:192.0.2.9")["address"])

    def test_sign_mistakes(self) -> None:
        """A name that is no secret's, and a source that checks no signatures, are told."""
        for request, name, problem in (
            (PUSH, "mian", 'There is no secret "mian"; the names are: "main", "old".'),
            ("POST /hook/x HTTP/1.1\n\nx", "main", 'The source "hidden" checks no signatures.'),
        ):
            status, out, err = self.run_try(request, "--sign", name)
            self.assertEqual((2, ""), (status, out))
            self.assertIn(problem, err)

    def test_curl(self) -> None:
        """The command line for curl sends the same bytes, and leaves out tokens and secrets, which it says."""
        status, out, err = self.run_try(PUSH, "--sign", "main", "--curl")
        self.assertEqual((0, ""), (status, err))
        words = shlex.split(out)
        self.assertEqual(["printf", "%s", "eyJyZWYiOiJtYWluIn0=", "|", "base64", "-d", "|", "curl"], words[:8])
        self.assertIn("http://localhost:8181/github/web-1", words)
        self.assertTrue(any(word.startswith("x-hub-signature-256: sha256=") for word in words))
        self.assertIn("Content-Type:", words)
        batch = f"POST /batch?key={SECRET} HTTP/1.1\nCookie: {SECRET}\n\n[]"
        status, out, err = self.run_try(batch, "--curl")
        self.assertIn("/batch?key=***", out)
        self.assertIn("It is without the token in the URL, the header cookie", err)
        status, out, err = self.run_try("POST /gitlab HTTP/1.1\n\n{}", "--sign", "main", "--curl")
        self.assertEqual((2, ""), (status, out))
        self.assertIn("sends the secret itself", err)

    def test_curl_is_exact(self) -> None:
        """What the shell makes of the command is the body, byte for byte."""
        body = b"\x00'\"\xff@\n$x"
        _, out, _ = self.run_try(b"POST /plain HTTP/1.1\n\n" + body, "--curl")
        before, _, _ = out.rpartition("| curl ")
        done = subprocess.run(["sh", "-c", before.rstrip(" |")], capture_output=True, check=True, timeout=20)
        self.assertEqual(body, done.stdout)

    def test_mistakes(self) -> None:
        """Without a usable configuration or request there is nothing to judge by, and both are told."""
        self.assertEqual(2, self.run_try("no header\n").status)
        self.write("config.yaml", CONFIG.replace("/*", "nonsense"))
        status, out, err = self.run_try(PUSH)
        self.assertEqual((2, ""), (status, out))
        self.assertIn("config.yaml:", err)
        os.remove("secrets")
        self.write("config.yaml", CONFIG)
        status, _, err = self.run_try(PUSH)
        self.assertEqual(2, status)
        self.assertIn("secrets", err)
        os.remove("config.yaml")
        self.assertEqual(2, self.run_try(PUSH).status)

    def test_usage(self) -> None:
        """Options of the one form are mistakes in the other, and one of both is needed."""
        self.write("request.http", PUSH)
        for arguments in (
            (),
            ("--config", "config.yaml", "--rules", "rules.yaml"),
            ("--config", "config.yaml", "--router", "r"),
            ("--rules", "rules.yaml"),
            ("--rules", "rules.yaml", "--router", "r", "--source", "s"),
            ("--config", "config.yaml", "--peer", "nobody"),
        ):
            self.assertEqual(2, run_command("try", "request.http", *arguments).status, arguments)

    def test_health(self) -> None:
        """A health check is no message, and is told."""
        self.write("config.yaml", "{port: 8181, paths: /in, health: /healthz}")
        self.write("request.http", "GET /healthz HTTP/1.1\n\n")
        status, out, err = self.run_try("GET /in HTTP/1.1\n\n")
        self.assertEqual(1, status)
        self.write("config.yaml", '{port: 8181, paths: "/.*", health: /healthz}')
        status, out, err = self.run_try("GET /healthz HTTP/1.1\n\n")
        self.assertEqual((2, ""), (status, out))
        self.assertIn("It is a health check", err)

    def test_safe(self) -> None:
        """What a sender writes is shown and not obeyed."""
        _, out, err = self.run_try(PUSH.replace("d-1", "\x1b[2J\u202e"), "--sign", "main")
        self.assertTrue((out + err).replace("\n", "").isprintable(), out)
        self.assertEqual(0, self.run_try(b"POST /zoom HTTP/1.1\n\n\xff\x00", "--source", "apart").status)

    @given(
        st.sampled_from(["github/a", "stripe", "zoom", "gitlab", "note", "batch", "hook/x", "plain", "none"]),
        st.lists(
            st.tuples(
                st.sampled_from(
                    ["X-Hub-Signature-256", "Stripe-Signature", "X-Zm-Signature", "X-Gitlab-Token", "Authorization"]
                ),
                st.binary(max_size=40).map(lambda text: text.replace(b"\n", b"")),
            ),
            max_size=4,
        ),
        st.text("k=&%+*.é", max_size=12),
        st.binary(max_size=40),
    )
    def test_hostile(self, path: str, headers: list[tuple[str, bytes]], query: str, body: bytes) -> None:
        """Whatever a request holds, a trial comes to one of its four ends."""
        lines = b"".join(b"%b: %b\n" % (name.encode(), value) for name, value in headers)
        target = f"/{path}?{quote(query, safe='k=&%+*.')}" if query else f"/{path}"
        ran = self.run_try(f"POST {target} HTTP/1.1\n".encode() + lines + b"\n" + body, "--port", "8181")
        self.assertIn(ran.status, (0, 1, 2, 3))
        self.assertNotIn("Traceback", ran.err)

    def test_audit(self) -> None:
        """Whatever a trial comes to, it opens no socket and no file to write, and changes nothing."""
        self.write("push.http", PUSH)
        self.write("check.http", CHECK)
        before = sorted(os.listdir())
        for arguments, expected in (
            (("push.http", "--sign", "main", "--peer", "192.0.2.7"), 0),
            (("push.http", "--json"), 1),
            (("check.http", "--source", "zoom", "--sign", "main"), 3),
            (("check.http",), 2),
        ):
            done = subprocess.run(
                [sys.executable, "-B", "-c", _WATCHED, "try", *arguments, "--config", "config.yaml"],
                capture_output=True,
                timeout=60,
                check=False,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "STATE_DIRECTORY": os.getcwd()},
            )
            self.assertEqual(expected, done.returncode, done.stderr)
            self.assertEqual("[]", done.stderr.decode().splitlines()[-1])
        self.assertEqual(before, sorted(os.listdir()))


class ClientCertificateTests(CommandCase):
    def test_client(self) -> None:
        """A source that allows clients is tried with a certificate; without one that is not judged."""
        authority = Authority("Our CA")
        os.makedirs("tls")
        settings = server_settings("tls", authority.issue("server"))
        os.chmod(settings.key_file, 0o600)
        ca_file = write_ca_file("tls", "ca", authority)
        self.write(
            "config.yaml",
            f"{{port: 8443, tls_key_file: {settings.key_file}, tls_cert_file: {settings.cert_file}, "
            f"tls_peer_verify: yes, tls_ca_file: {ca_file}, allow_clients: ['*.example.net']}}",
        )
        self.write("good.pem", certificates_pem(authority.issue("a.example.net", (CLIENT,), names=()).certificate))
        self.write("bad.pem", certificates_pem(authority.issue("a.example.org", (CLIENT,), names=()).certificate))
        self.write("request.http", "POST / HTTP/1.1\n\nx")
        for certificate, expected in (
            ("good.pem", (0, "passes")),
            ("bad.pem", (1, "refuses")),
            (None, (0, "not judged")),
        ):
            given = ("--client-cert", certificate) if certificate else ()
            status, out, err = run_command("try", "request.http", "--config", "config.yaml", "--json", *given)
            self.assertEqual("", err)
            facts = json.loads(out)
            verdict = next(each["verdict"] for each in facts["decisions"] if each["decision"] == "client")
            self.assertEqual(expected, (status, verdict))
            if certificate == "good.pem":
                self.assertEqual("a.example.net", facts["messages"][0]["webhook.client.cn"])
                self.assertIn("Strict-Transport-Security", facts["answer"]["bytes"])
        status, _, err = run_command("try", "request.http", "--config", "config.yaml", "--client-cert", "request.http")
        self.assertEqual(2, status)
        self.assertIn("holds no certificate", err)
