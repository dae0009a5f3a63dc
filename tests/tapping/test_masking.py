"""
Tests for L{webhookrx.tapping.masking}.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from webhookrx.tapping.masking import CUT, MOST_SHOWN, Masks

SECRET = "hush-hush-7"
NAMES = ("password", "accessToken", "api_key", "X-Api-Key", "client.secret", "Authorization", "privateKey", "sessionId")

_plain = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


def masked_text(text: str) -> str:
    """Return a text as it is shown."""
    shown: str = Masks().masked(text)[0]
    return shown


class MaskedTests(SynchronousTestCase):
    """Tests for L{Masks.masked}, of texts too."""

    def assert_hidden(self, value: Any) -> None:
        """Assert that a secret is not in the copy of a value."""
        copy, _ = Masks().masked(value)
        self.assertNotIn("hush", json.dumps(copy))

    def test_names(self) -> None:
        """Members are masked by their names, however these are spelled, and others stay."""
        for name in NAMES:
            with self.subTest(name):
                copy, has_cut = Masks().masked({name: SECRET, "user": "ann", "n": 7})
                self.assertEqual(copy, {name: "***", "user": "ann", "n": 7})
                self.assertFalse(has_cut)

    @given(_plain, st.sampled_from(NAMES), _plain)
    def test_any_depth(self, around: Any, name: str, beside: Any) -> None:
        """A secret is masked at any depth, whatever stands around it, and be it an object or a list itself."""
        for secret in (SECRET, [SECRET], {"a": SECRET}):
            self.assert_hidden({"log": [around, {"x": {name: secret, "other": beside}}]})

    def test_own_names(self) -> None:
        """More names can be given, in any case."""
        self.assertEqual(Masks(["IBAN"]).masked({"iban": "x", "bic": "y"})[0], {"iban": "***", "bic": "y"})

    def test_text_of_json(self) -> None:
        """A text of JSON is masked by its members, and one without secrets is as it was."""
        self.assert_hidden({"MESSAGE": json.dumps({"a": {"password": {"x": SECRET}}})})
        text = '{"b": 1,  "a":[2.50]}'
        self.assertEqual(Masks().masked({"MESSAGE": text})[0], {"MESSAGE": text})

    def test_texts_of_other_kinds(self) -> None:
        """Credentials are masked in forms, however their names are encoded, JSON in them, and lines of headers."""
        masked = masked_text
        for text, shown in (
            (f"user%5Bpass%77ord%5D={SECRET}&n=1", "user%5Bpass%77ord%5D=***&n=1"),
            ("n=1&payload=%7B%22token%22%3A%22hush%22%7D&m=2", "n=1&payload=***&m=2"),
            ("n=1&payload=%7B%22user%22%3A%22ann%22%7D", "n=1&payload=%7B%22user%22%3A%22ann%22%7D"),
            (f"Cookie: a=1; b={SECRET}\nHost: a", "Cookie: ***\nHost: a"),
            (f"12:30:45 access-token = {SECRET} by ann", "12:30:45 access-token = *** by ann"),
        ):
            with self.subTest(text):
                self.assertEqual(masked(text), shown)

    def test_exact_json(self) -> None:
        """Arrays of exact JSON are masked and cut; without need for that they stay as they were written."""
        number, clean = msgspec.Raw(b"1.10"), msgspec.Raw(b'[1.10,{"a":2}]')
        record = {"n": number, "clean": clean, "list": msgspec.Raw(b'[{"token":"hush"}]')}
        self.assertEqual(Masks().masked(record), ({"n": number, "clean": clean, "list": [{"token": "***"}]}, False))
        for size in (MOST_SHOWN // 2, MOST_SHOWN * 8):
            copy, has_cut = Masks().masked({"list": msgspec.Raw(b"[" + b"1," * size + b"1]")})
            self.assertTrue(has_cut)
            self.assertLessEqual(len(msgspec.json.encode(copy)), MOST_SHOWN + 100)

    def test_base64(self) -> None:
        """A body in Base64 is masked: nobody can look into it."""
        self.assertEqual(Masks().masked({"webhook.body_base64": "aHVzaA=="})[0], {"webhook.body_base64": "***"})

    def test_nested_texts(self) -> None:
        """A text of JSON in texts of JSON is masked, and left out where there are too many."""
        value: Any = {"password": SECRET}
        for _ in range(8):
            value = {"body": json.dumps(value)}
            self.assert_hidden(value)

    def test_other_texts(self) -> None:
        """Secrets are masked in forms, headers, settings, and JSON that was cut off."""
        for text in (
            f"a=1&password={SECRET}&b=2",
            f"login ok, token: {SECRET}; user=x",
            f"Authorization: Bearer {SECRET}",
            f'{{"password": "{SECRET}", "x": ',
            f'{{"password": "a\\"{SECRET}", "x": ',
            f'{{"secret": {{"a": "{SECRET}", ',
            f'{{"tokens": ["{SECRET}", ',
            f"api_key='{SECRET}' x",
            f'[{{"a": "{{\\"password\\": \\"{SECRET}\\"}}"',
            f'{{"password"      :\n      "{SECRET}", "x": ',
            f'{{"API Key": "{SECRET}", "x": ',
            f'{{"pass\\u0077ord": "{SECRET}", "x": ',
            f"user         = ann\npassword     = {SECRET}\n",
            f"password = a,{SECRET};{SECRET}'{SECRET}&x=1",
            f'password = "a\n{SECRET}"',
            f'password = """\n{SECRET}\n"""',
            f"password: |\n  {SECRET}\n",
            f"passwords:\n - {SECRET}\n",
            f"<a><Password>{SECRET}</Password></a>",
            f"<s:Header><wsse:Password Type='x'><![CDATA[{SECRET}]]></wsse:Password></s:Header>",
            f'<a><param name="password">{SECRET}</param></a>',
            f'--b\r\nContent-Disposition: form-data; name="password"\r\n\r\n{SECRET}\r\n--b--',
            f'{{"password":"{SECRET}"}}'.encode("utf-16").decode("utf-8", "replace"),
            f'{{"password":"{SECRET}"}}'.encode("utf-16-be").decode("utf-8", "replace"),
        ):
            with self.subTest(text):
                self.assert_hidden({"MESSAGE": text})
                self.assert_hidden(text)

    def test_repeated_names(self) -> None:
        """A secret is masked in JSON that has a name twice, where only the last one is decoded."""
        for text in (
            f'{{"password":"{SECRET}","password":null}}',
            f'{{"a":{{"password":"{SECRET}"}},"a":1}}',
            f'[{{"password":"{SECRET}","password":""}}]',
        ):
            with self.subTest(text):
                self.assert_hidden({"MESSAGE": text})
                self.assertNotIn(b"hush", msgspec.json.encode(Masks().masked({"a": msgspec.Raw(text.encode())})[0]))

    def test_names_beside_values(self) -> None:
        """A secret is masked whose name is a value beside it, as some write headers."""
        for value in (
            {"headers": [{"name": "Authorization", "value": SECRET}]},
            {"fields": [{"key": "api_key", "values": [SECRET]}]},
            {"headers": [["Cookie", SECRET]]},
            {"rawHeaders": ["Host", "a", "Authorization", SECRET]},
        ):
            with self.subTest(value):
                self.assert_hidden(value)
                self.assert_hidden({"MESSAGE": json.dumps(value)})
        plain = {"labels": [{"name": "bug", "value": 1}], "tags": ["token", "bug"]}
        self.assertEqual(Masks().masked(plain)[0], plain)

    def test_telltales(self) -> None:
        """What can't be anything but a secret is masked under any name."""
        for text in (
            f"Bearer {SECRET}",
            f"-----BEGIN EC PRIVATE KEY-----\n{SECRET}\n-----END EC PRIVATE KEY-----",
            f"https://ann:{SECRET}@example.com/",
        ):
            with self.subTest(text):
                self.assert_hidden({"x": text})
        self.assertEqual(masked_text("bearer of good news, at http://a:80/"), "bearer of good news, at http://a:80/")

    def test_more_names(self) -> None:
        """Names are found to hold secrets in further spellings."""
        for name in (
            "passWord",
            "PassPhrase",
            "smtp_pass",
            "userPwd",
            "PIN",
            "otp",
            "cardCVC",
            "HMAC",
            "sig",
            "clientAuth",
        ):
            with self.subTest(name):
                self.assert_hidden({name: SECRET})
        for name in ("passenger", "signal", "authors", "keyboard", "machine", "cardinal", "option"):
            with self.subTest(name):
                self.assertEqual(Masks().masked({name: "x"})[0], {name: "x"})

    def test_many_names(self) -> None:
        """A copy ends where it has looked at very many names, so that no sender has it take long."""
        many = "".join(f"x{n}=1&" for n in range(9_000))
        for text in (many, "".join(f"x{n}=%25&" for n in range(6_000)), "<a></a>" * 9_000):
            with self.subTest(text[:10]):
                shown = masked_text(f"{text}password={SECRET}")
                self.assertTrue(shown.endswith(CUT))
                self.assertNotIn("hush", shown)
        copy, has_cut = Masks().masked({f"x{n}": 1 for n in range(5_000)})
        self.assertTrue(has_cut)
        self.assertLess(len(copy), 5_000)

    def test_other_texts_stay(self) -> None:
        """What is no secret in such a text stays."""
        self.assertEqual(masked_text("a=1&password=x&b=2"), "a=1&password=***&b=2")
        self.assertEqual(masked_text("12:30 user=ann"), "12:30 user=ann")

    def test_names_in_values(self) -> None:
        """A secret in what looks like the value of another name is masked, too."""
        self.assert_hidden("a=password=hush")
        self.assert_hidden("at 12:30:token:hush")

    def test_cut(self) -> None:
        """A copy is no larger than a tap may show, and says that it was cut."""
        large = {"text": "x" * (4 * MOST_SHOWN), "list": list(range(MOST_SHOWN)), "late": {"a": 1}}
        copy, has_cut = Masks().masked(large)
        self.assertTrue(has_cut)
        self.assertTrue(copy["text"].endswith(CUT))
        self.assertLess(len(json.dumps(copy)), 2 * MOST_SHOWN)

    def test_cut_secret(self) -> None:
        """A secret that stands where a text is cut off is not shown."""
        text = json.dumps({"pad": "x" * (MOST_SHOWN - 40), "password": "hush" * 100})
        self.assert_hidden({"MESSAGE": text})

    def test_deep(self) -> None:
        """Values that are nested too deeply are left out."""
        value: Any = SECRET
        for _ in range(500):
            value = [value]
        self.assert_hidden(value)
