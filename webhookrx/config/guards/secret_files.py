"""
The secrets of a source: their files, and whether its sender's requests can be verified with them. No error quotes one.
"""

from __future__ import annotations

import os
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from webhookrx.config.files import public_warning, read_file, signature_of
from webhookrx.config.guards.context import KnownKeys
from webhookrx.diagnostics import Diagnostic, diagnose, quoted, quoted_short
from webhookrx.errors import ConfigError
from webhookrx.senders.definition import SenderDefinition
from webhookrx.senders.signatures.named_secrets import (
    MAX_SECRETS,
    NamedSecret,
    SecretError,
    doubt_about,
    read_secret_lines,
)
from webhookrx.senders.signatures.verifier import Verifier, asks_for_secrets
from webhookrx.settings import GuardSettings, Signature

#: For checks of secrets where the URL is not said, which is a mistake of its own.
_SOME_URL: Final = "https://host.invalid"


class KnownSecret(NamedTuple):
    """
    A secret, and where it is written.

    @ivar file: which of the files of a source it is in, from 0.
    """

    secret: NamedSecret
    path: str
    line: int
    file: int

    @property
    def place(self) -> str:
        """The file and the line, for people."""
        return f"{quoted(self.path)}, line {self.line}"


class SecretFiles:
    """
    The secrets of one source.

    @ivar known: all of them, in the order of the files.
    @ivar found: what is wrong with the files; the path of each is C{secrets_file} and the index of the file.
    @ivar watched: the state of each file from just before it was read, by path; those that a file names in place of a
        secret are among them.
    """

    def __init__(self, paths: Sequence[str], *, with_files: bool) -> None:
        """
        @param paths: absolute.
        @param with_files: C{@FILE} in place of a secret is the file with a key.
        """
        self.known: list[KnownSecret] = []
        self.found: list[Diagnostic] = []
        self.watched: dict[str, Signature] = {}
        for index, path in enumerate(paths):
            self._take(index, path, with_files=with_files)
        if len(self.known) > MAX_SECRETS:
            sentence = f"There are more than {MAX_SECRETS} secrets in the files together."
            self._blame(0, self.known[0].path, "secrets-file-unusable", sentence)

    @property
    def secrets(self) -> tuple[NamedSecret, ...]:
        """All secrets."""
        return tuple(each.secret for each in self.known)

    def _take(self, index: int, path: str, *, with_files: bool) -> None:
        data = self._content(index, path)
        if data is None:
            return
        if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
            self._blame(index, path, "secrets-file-unusable", f"{quoted(path)} is in UTF-16; write it in UTF-8.")
            return
        key_reader = self._key_reader(index) if with_files else None
        try:
            secrets = read_secret_lines(data.decode("utf-8", "surrogateescape"), key_reader)
        except SecretError as error:
            line = f", line {error.line}" if error.line else ""
            self._blame(index, path, "secrets-file-unusable", f"{quoted(path)}{line}: {error}")
            return
        for line_number, secret in secrets:
            known = KnownSecret(secret, path, line_number, index)
            doubt = doubt_about(secret, known.line)
            if doubt:
                self._blame(index, path, "secret-doubtful", f"{known.place}: {doubt}")
            other = next((each for each in self.known if each.secret.name == secret.name), None)
            if other is None:
                self.known.append(known)
            else:
                sentence = (
                    f"{known.place}: {other.place} has a secret of the same name; give each its own, as NAME = VALUE."
                )
                self._blame(index, path, "secrets-file-unusable", sentence)

    def _key_reader(self, index: int) -> Callable[[str], bytes]:
        def read_key(name: str) -> bytes:
            if not os.path.isabs(name):
                raise SecretError("The name of a key file behind @ is absolute, such as @/etc/webhookrx/key.pem.")
            data = self._content(index, name)
            if data is None:
                raise SecretError("The key file can't be used.")
            return data

        return read_key

    def _content(self, index: int, path: str) -> bytes | None:
        self.watched.setdefault(path, signature_of(path))
        try:
            data, mode = read_file(path)
        except ConfigError as error:
            code = "secrets-file-unusable" if os.path.lexists(path) else "secrets-file-missing"
            self._blame(index, path, code, error.problem)
            return None
        warning = public_warning(path, mode)
        if warning:
            self._blame(index, path, "secrets-file-open", warning)
        return data

    def _blame(self, index: int, path: str, code: str, sentence: str) -> None:
        self.found.append(diagnose(code, ("secrets_file", index), sentence, named=path))


def check_secrets(guard: GuardSettings, files: SecretFiles, keys: KnownKeys) -> Iterator[Diagnostic]:
    """
    Yield what is wrong with the secrets of a guard beside its sender.

    @param files: usable ones.
    """
    sender = guard.sender
    assert sender is not None, "only senders have secrets"
    about = ("secrets_file",) if files.watched else ("sender",)
    if files.watched and not _takes_secrets(sender):
        sentence = f"This sender has no secrets: the definition {quoted_short(sender.id)} has no use for them."
        yield diagnose("sender-lacks", about, sentence)
    elif guard.verify == "off":
        if files.watched and not (guard.handshake and _asks_for_secrets(sender)):
            yield diagnose("secrets-not-used", about, "The secrets are not used: verify is off.")
    else:
        unusable = list(_unusable(guard, files, keys))
        yield from unusable
        has_keys = bool(guard.secrets or keys.files or keys.are_fetched)
        lacks_setting = any(each.needed and name not in guard.sender_settings for name, each in sender.settings.items())
        problem = None if unusable or lacks_setting else _why_not(guard, guard.secrets, keys)
        if problem is not None and not has_keys and not asks_for_secrets(sender):
            sentence = (
                "Nothing can be verified: this sender publishes its keys. Give signing_certs, or fetch_keys: yes, "
                "for the whole service."
            )
            yield diagnose("no-secret", about, sentence)
        elif problem is not None:
            sentence = f"{problem} So nothing can be verified; give secrets_file with a key, or say verify: off."
            yield diagnose("no-secret", about, sentence)
    asks = guard.handshake and any(each.equal for each in sender.handshake)
    if asks and not any(each.is_verify_token for each in guard.secrets):
        sentence = "No secret has the name verify-token, so that questions of the sender are refused."
        yield diagnose("no-verify-token", about, sentence)


def _unusable(guard: GuardSettings, files: SecretFiles, keys: KnownKeys) -> Iterator[Diagnostic]:
    """Yield secrets of which no scheme can make a key."""
    for known in files.known:
        problem = None if known.secret.is_verify_token else _why_not(guard, (known.secret,), keys)
        if problem is not None:
            sentence = f"{known.place}: no key can be made of it: {problem}"
            yield diagnose("secret-unusable", ("secrets_file", known.file), sentence, named=known.path)


def _why_not(guard: GuardSettings, secrets: Sequence[NamedSecret], keys: KnownKeys) -> str | None:
    """Return why requests can't be verified with these secrets; None if they can."""
    try:
        verifier_of(guard, secrets, keys)
    except SecretError as error:
        return str(error)
    return None


def verifier_of(guard: GuardSettings, secrets: Sequence[NamedSecret], keys: KnownKeys) -> Verifier:
    """
    Return what would verify the requests of a source with these secrets.

    @raise SecretError: nothing can be verified with them.
    """
    assert guard.sender is not None, "it has secrets"
    url = guard.public_url or _SOME_URL
    return Verifier(guard.sender, secrets, public_url=url, settings=guard.sender_settings, keys=keys)


def shows_secrets(guard: GuardSettings, keys: KnownKeys) -> bool:
    """Tell whether requests show what nobody else may see, a token or a secret, and not only a signature of it."""
    sender = guard.sender
    if guard.tokens or sender is None or not guard.secrets:
        return bool(guard.tokens)
    asks = guard.handshake and any(each.equal for each in sender.handshake)
    if asks and any(each.is_verify_token for each in guard.secrets):
        return True
    return guard.verify != "off" and verifier_of(guard, guard.secrets, keys).shows_secret


def _takes_secrets(sender: SenderDefinition) -> bool:
    return bool(sender.verify) or _asks_for_secrets(sender)


def _asks_for_secrets(sender: SenderDefinition) -> bool:
    return any(each.equal or each.proof is not None for each in sender.handshake)
