"""
What the guards of all sources share: definitions of senders, lists of networks and public keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from webhookrx.config.files import absolute, read_file
from webhookrx.config.option_reader import OptionReader
from webhookrx.diagnostics import nearest, quoted, quoted_short
from webhookrx.errors import ConfigError
from webhookrx.senders.definition import SenderDefinition
from webhookrx.senders.signatures.key_sets import key_set
from webhookrx.senders.signatures.outcome import KeyUnavailable


@dataclass
class KnownKeys:
    """
    Public keys of senders that are no secrets of a source, as far as they are known when settings are read.

    @ivar files: the contents of files.
    @ivar are_fetched: whether others are fetched later.
    """

    files: Sequence[bytes] = ()
    are_fetched: bool = False

    def fetched(self, url: str) -> bytes:
        """
        @raise KeyUnavailable: always: nothing is fetched while settings are read.
        """
        raise KeyUnavailable

    def renew(self, url: str) -> bool:
        """Return that no other key will come while settings are read."""
        return False


class GuardContext:
    """
    What the guards of all sources share.

    @param own: the sender definitions of the operator, which take the place of ours by id.
    @ivar networks: the networks of each list, by its name; None: which lists there are is not known.
    @ivar keys: public keys of senders.
    @ivar plaintext: tokens may come over plain HTTP, because a proxy in front speaks TLS.
    """

    def __init__(
        self,
        own: Iterable[SenderDefinition],
        networks: Mapping[str, tuple[str, ...]] | None,
        keys: KnownKeys,
        *,
        plaintext: bool = False,
    ) -> None:
        self._own = {definition.id: definition for definition in own}
        self.networks = networks
        self.keys = keys
        self.plaintext = plaintext

    def with_own(self, own: Iterable[SenderDefinition]) -> GuardContext:
        """Return the same with other sender definitions of the operator."""
        return GuardContext(own, self.networks, self.keys, plaintext=self.plaintext)

    def sender(self, name: str) -> SenderDefinition:
        """
        Return the definition of this id.

        @raise ConfigError: there is none.
        """
        # Its reader takes a megabyte of memory, which a receiver without senders does not need.
        from webhookrx.senders.definitions import builtin_definition, builtin_names

        found = self._own.get(name) or builtin_definition(name)
        if found is None:
            near = nearest(name, [*self._own, *builtin_names()])
            raise ConfigError(f"There is no sender {quoted_short(name)}, here or in --senders. {near}".rstrip())
        return found


def read_keys(options: OptionReader) -> KnownKeys:
    """Return the public keys of senders that the service knows. Mistakes are noted."""
    options.paths("signing-certs")
    found = [
        options.problems.attempt(each.origin, _keys_in, absolute(each.text)) for each in options.raw("signing-certs")
    ]
    return KnownKeys(tuple(each for each in found if each is not None), options.flag("fetch-keys", False))


def _keys_in(path: str) -> bytes:
    """@raise ConfigError: the file can't be read, or has no key that can be used."""
    data, _ = read_file(path)
    if not key_set(data):
        raise ConfigError(
            f"{quoted(path)} has no public key that can be used: certificates or public keys in PEM, or a key set in "
            "JSON, RSA with 2,048 bits at least or P-256."
        )
    return data
