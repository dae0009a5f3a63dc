"""
The guard of a source: its options with the definition of its sender, and with the files that they name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from webhookrx.config.guards.context import GuardContext
from webhookrx.config.guards.secret_files import SecretFiles, check_secrets
from webhookrx.diagnostics import Diagnostic, diagnose, has_errors, nearest, quoted
from webhookrx.errors import ConfigError
from webhookrx.guard.sender_fit import SenderFit
from webhookrx.guard.word_reader import GuardValues, read_words
from webhookrx.guard.words import GuardWords
from webhookrx.intake.networks import LIST_NAME, parse_network
from webhookrx.intake.tokens import NamedToken
from webhookrx.senders.definition import SenderDefinition
from webhookrx.senders.handshakes.costs import sends_again_after
from webhookrx.senders.signatures.verifier import names_files
from webhookrx.settings import GuardSettings, Signature


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
    plain = GuardSettings(tokens=guard.tokens, token_files=guard.token_files)
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
            token_files=words.auth_token_file,
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
        fit = SenderFit(words, values, sender)
        self.found += fit.found
        if values.quota is not None and sends_again_after(sender, 429) is False:
            self._blame(
                "quota-loses", "quota", f"{sender.id} does not send again what a quota refuses with 429: that is lost."
            )
        files = SecretFiles(words.secrets_file, with_files=names_files(sender))
        self.watched = files.watched
        guard = replace(
            guard,
            sender=sender,
            secrets=files.secrets,
            secrets_files=words.secrets_file,
            verify=fit.verify,
            handshake=fit.handshake,
            public_url=values.public_url,
            sender_settings=fit.settings,
        )
        self.found += files.found
        if not has_errors(files.found):
            self.found += check_secrets(guard, files, self._context.keys)
        return guard
