"""
The guard of a source: its options with the definition of its sender, and with the files that they name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from webhookrx.config.guard_context import GuardContext
from webhookrx.config.guard_secrets import SecretFiles, check_secrets
from webhookrx.diagnostics import Diagnostic, diagnose, has_errors, nearest, quoted, quoted_short
from webhookrx.errors import ConfigError
from webhookrx.guard.word_reader import GuardValues, read_words
from webhookrx.guard.words import GuardWords
from webhookrx.intake.networks import LIST_NAME, parse_network
from webhookrx.intake.tokens import NamedToken
from webhookrx.quantities import read_flag
from webhookrx.senders.definition import SenderDefinition, Setting
from webhookrx.senders.handshakes.costs import sends_again_after
from webhookrx.senders.signatures.code_verifiers import CODES_WITH_URL
from webhookrx.senders.signatures.verifier import names_files
from webhookrx.settings import GuardSettings, Signature

SettingValue: TypeAlias = str | bool | tuple[str, ...]


class ReadGuard(NamedTuple):
    """
    A guard, and what is wrong with it.

    @ivar guard: None for a plain source, and for one whose guard can't be used.
    @ivar found: what is wrong; the path of each begins with the option, as a rule spells it.
    @ivar watched: the state of each file of secrets from just before it was read, by absolute path.
    """

    guard: GuardSettings | None
    found: list[Diagnostic]
    watched: Mapping[str, Signature]


def resolve_guard(
    words: GuardWords, tokens: Sequence[NamedToken], needs_guard: bool, context: GuardContext
) -> ReadGuard:
    """
    Return the guard of a source.

    @param words: the options; names of files in them are absolute. Options in L{GuardWords.without_sender} do not
        count: whether they are a mistake is for each form to say.
    @param tokens: all that are accepted.
    @param needs_guard: whether the tokens alone need one: one has a name, or is known by its digest alone.
    """
    values, found = read_words(words)
    resolver = _GuardResolver(words, values, context)
    guard = resolver.resolve(tuple(tokens))
    found += resolver.found
    if has_errors(found):
        return ReadGuard(None, found, resolver.watched)
    plain = GuardSettings(tokens=guard.tokens)
    return ReadGuard(None if guard == plain and not needs_guard else guard, found, resolver.watched)


class _GuardResolver:
    """Makes one guard; mistakes are noted in C{found}."""

    def __init__(self, words: GuardWords, values: GuardValues, context: GuardContext) -> None:
        self.found: list[Diagnostic] = []
        self.watched: Mapping[str, Signature] = {}
        self._words = words
        self._values = values
        self._context = context

    def resolve(self, tokens: tuple[NamedToken, ...]) -> GuardSettings:
        words, values = self._words, self._values
        guard = GuardSettings(
            split=values.split,
            idempotency=values.idempotency,
            quota=values.quota,
            allow=self._allowed(),
            allow_clients=words.allow_clients,
            tokens=tokens,
            token_place=values.token_place,
        )
        sender = self._sender()
        return guard if sender is None else self._with_sender(guard, sender)

    def _blame(self, code: str, option: str, sentence: str, *more: int | str) -> None:
        self.found.append(diagnose(code, (option, *more), sentence))

    def _sender(self) -> SenderDefinition | None:
        if not self._words.sender:
            return None
        try:
            return self._context.sender(self._words.sender)
        except ConfigError as error:
            self._blame("sender-unknown", "sender", error.problem)
            return None

    def _allowed(self) -> Mapping[str, tuple[str, ...]]:
        allowed: dict[str, tuple[str, ...]] = {}
        for number, item in enumerate(self._words.allow):
            if not LIST_NAME.fullmatch(item):
                try:
                    allowed[item] = (str(parse_network(item)),)
                except ValueError:
                    continue  # that is found already
            elif self._context.networks is None:
                allowed[item] = ()
            elif item not in self._context.networks:
                near = nearest(item, self._context.networks)
                self._blame(
                    "networks-unknown", "allow", f"There is no list {quoted(item)} in networks. {near}".rstrip(), number
                )
            else:
                allowed[item] = self._context.networks[item]
        return allowed

    def _with_sender(self, guard: GuardSettings, sender: SenderDefinition) -> GuardSettings:
        words, values = self._words, self._values
        name = quoted_short(sender.id)
        verify = values.verify or ("required" if sender.verify else "off")
        if verify != "off" and not sender.verify:
            self._blame("sender-lacks", "verify", f"Nothing can be verified: the definition {name} has no verify.")
            verify = "off"
        if values.split == "yes" and not sender.split:
            sentence = f"The definition {name} has no split; write lines, documents or a JSON pointer."
            self._blame("sender-lacks", "split", sentence)
        if values.idempotency is not None and not sender.delivery:
            sentence = (
                f"Deliveries of this sender have no ids: the definition {name} has no delivery; write idempotency: off."
            )
            self._blame("sender-lacks", "idempotency", sentence)
        if values.quota is not None and sends_again_after(sender, 429) is False:
            self._blame(
                "quota-loses", "quota", f"{sender.id} does not send again what a quota refuses with 429: that is lost."
            )
        handshake = bool(sender.handshake) if words.handshake is None else words.handshake
        if handshake and not sender.handshake:
            sentence = f"This sender asks nothing: the definition {name} has no handshake."
            self._blame("sender-lacks", "handshake", sentence)
        settings = self._settings(sender)
        files = SecretFiles(words.secrets_file, with_files=names_files(sender))
        self.watched = files.watched
        guard = replace(
            guard,
            sender=sender,
            secrets=files.secrets,
            verify=verify,
            handshake=handshake,
            public_url=values.public_url,
            sender_settings=settings,
        )
        self.found += files.found
        if not has_errors(files.found):
            self.found += check_secrets(guard, files, self._context.keys)
        if not words.public_url and _signs_url(sender, verify, handshake):
            sentence = (
                f"The definition {name} needs public_url: what is signed has the URL in it that the sender sends to."
            )
            self._blame("needs-public-url", "sender", sentence)
        return guard

    def _settings(self, sender: SenderDefinition) -> dict[str, SettingValue]:
        settings: dict[str, SettingValue] = {}
        for name, texts in self._words.sender_settings.items():
            setting = sender.settings.get(name)
            if setting is None:
                known = f"which are {', '.join(sender.settings)}" if sender.settings else "of which there are none"
                near = nearest(name, sender.settings)
                sentence = f"{quoted_short(name)} is no setting of {quoted_short(sender.id)}, {known}. {near}".rstrip()
                self._blame("sender-setting", "sender_settings", sentence, name)
                continue
            try:
                settings[name] = setting_value(setting, texts)
            except ValueError as error:
                self._blame("sender-setting", "sender_settings", f"{quoted_short(name)}: {error}", name)
        for name, setting in sender.settings.items():
            if setting.needed and name not in self._words.sender_settings:
                sentence = f"{quoted_short(sender.id)} needs {quoted_short(name)} in sender_settings: {setting.meaning}"
                self._blame("sender-setting", "sender", sentence)
        return settings


def setting_value(setting: Setting, texts: Sequence[str]) -> SettingValue:
    """
    Return the value of a setting of a sender.

    @raise ValueError: the values are not of the kind of the setting.
    """
    if setting.kind == "list":
        if not all(texts) or not texts:
            raise ValueError("It takes a list of texts that are not empty.")
        return tuple(texts)
    if len(texts) != 1:
        raise ValueError("It takes one value.")
    if setting.kind == "flag":
        flag = read_flag(texts[0])
        if flag is None:
            raise ValueError(f"{quoted_short(texts[0])} is neither yes nor no.")
        return flag
    if not texts[0]:
        raise ValueError("It is empty.")
    return texts[0]


def _signs_url(sender: SenderDefinition, verify: str, handshake: bool) -> bool:
    """Tell whether a source has to know the URL of itself."""
    schemes = sender.schemes if verify != "off" else ()
    proofs = [each.proof.of for each in sender.handshake if each.proof is not None] if handshake else []
    return any("{url}" in each.signed or each.code in CODES_WITH_URL for each in schemes) or any(
        "{url}" in of for of in proofs
    )
