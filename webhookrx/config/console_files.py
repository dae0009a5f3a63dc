"""
What a router keeps of its console: who it is, and the bundles with which it starts and goes on without the console.

The directory has four files. Each is replaced as a whole, so that a crash leaves the old one or the new one:

    - C{identity.json}: L{RouterIdentity}, with the private key
    - C{next.json}: the newest bundle that was accepted, until it is applied
    - C{current.json}: the bundle that was applied last; C{next.json} becomes it by a rename
    - C{refused.json}: L{RefusedBundle}, the bundle that was accepted, and could not be applied; until another is

C{enrolling.json} is there while the router enrols, see L{webhookrx.config.started_enrolment}.

Bundles lie there as they came, and are verified each time that they are read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Annotated, Final, NamedTuple

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from msgspec import Meta
from msgspec.structs import replace

from webhookrx.config.files import read_state, sync_directory, write_state
from webhookrx.errors import BundleRefused, ConfigError
from webhookrx.filesystem import FileSystem
from webhookrx.management.bundle import RouterBundle, digest, key_id, open_bundle, public_key
from webhookrx.version import installed_version

IDENTITY: Final = "identity.json"
NEXT: Final = "next.json"
CURRENT: Final = "current.json"
REFUSED: Final = "refused.json"
ENROLLING: Final = "enrolling.json"

_LONGEST_ERROR: Final = 2_000

_FILE_SYSTEM: Final = FileSystem()

_encode: Final = msgspec.json.Encoder(order="deterministic").encode


class RouterIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """
    Who a router is to its console. Key and certificate are in one file, so that they always fit each other.

    @ivar console: the URL of the console's port for routers.
    @ivar key: the private key, PEM.
    @ivar certificate: the router's certificate, PEM.
    @ivar authorities: the CA certificates that are trusted for the console, PEM; no other is.
    @ivar signing_keys: the public keys that may sign bundles, see L{webhookrx.management.bundle.public_text}.
    """

    console: str
    guid: str
    name: str
    key: str
    certificate: str
    authorities: Annotated[tuple[str, ...], Meta(min_length=1)]
    signing_keys: Annotated[tuple[str, ...], Meta(min_length=1)]

    def __repr__(self) -> str:
        return f"<RouterIdentity {self.guid}>"

    @property
    def keys(self) -> dict[str, Ed25519PublicKey]:
        """
        The keys that may sign bundles, by L{key_id}.

        @raise ValueError: one is no key.
        """
        return {key_id(key): key for key in map(public_key, self.signing_keys)}


class KeptBundle(NamedTuple):
    """
    A verified bundle.

    @ivar digest: the name of its envelope.
    @ivar is_applied: whether it is the one that was applied last, rather than one that comes next.
    """

    bundle: RouterBundle
    digest: str
    is_applied: bool


class RefusedBundle(msgspec.Struct, frozen=True, kw_only=True):
    """
    A bundle that could not be applied, so that neither a restart nor the console brings it again for nothing.

    @ivar digest: the name of its envelope.
    @ivar error: why.
    @ivar version: that of webhookrx; another one may be able to apply it.
    """

    digest: str
    error: str
    version: str


class ConsoleFiles(NamedTuple):
    """
    What the directory holds.

    @ivar identity: None: the router is not enrolled.
    @ivar bundles: those that can be used, in the order in which they are to be tried.
    @ivar problems: a sentence for each file that can't be used.
    @ivar refused: the bundle that this version could not apply; it is not among C{bundles}.
    """

    identity: RouterIdentity | None
    bundles: tuple[KeptBundle, ...]
    problems: tuple[str, ...]
    refused: RefusedBundle | None = None

    @property
    def newest(self) -> tuple[int, str]:
        """The highest revision that was accepted, and the name of its envelope; 0 and nothing without one."""
        return max(((each.bundle.revision, each.digest) for each in self.bundles), default=(0, ""))


def read_console_files(directory: str) -> ConsoleFiles:
    """
    Return what a directory holds.

    @raise ConfigError: the identity can't be used.
    """
    content = read_state(directory, IDENTITY)
    if content is None:
        return ConsoleFiles(None, (), ())
    identity = _identity(content)
    bundles: list[KeptBundle] = []
    problems: list[str] = []
    refused = _refused(directory)
    for name in (NEXT, CURRENT):
        try:
            envelope = read_state(directory, name)
            if envelope is not None and not (name == NEXT and refused and refused.digest == digest(envelope)):
                opened = open_bundle(envelope, identity.keys, identity.guid)
                bundles.append(KeptBundle(opened, digest(envelope), name == CURRENT))
        except (ConfigError, BundleRefused) as error:
            problems.append(f"{name} can't be used: {error}")
    if len(bundles) == 2 and bundles[0].bundle.revision < bundles[1].bundle.revision:
        # Nothing of ours writes this: somebody has put an old file back.
        problems.append(f"{NEXT} is older than {CURRENT}.")
        del bundles[0]
    return ConsoleFiles(identity, tuple(bundles), tuple(problems), refused)


def write_identity(directory: str, identity: RouterIdentity, file_system: FileSystem = _FILE_SYSTEM) -> None:
    """
    Keep an identity, in place of the one before.

    @raise OSError: it can't be kept; the one before stays.
    """
    write_state(directory, IDENTITY, _encode(identity), file_system)


def accept_bundle(directory: str, envelope: bytes, file_system: FileSystem = _FILE_SYSTEM) -> RouterBundle:
    """
    Verify a bundle that has come, and keep it to be applied next. What it says of CA certificates and signing keys is
    trusted from then on, beside what was trusted before.

    @raise BundleRefused: see L{open_bundle}; or it is signed by a key that it takes away.
    @raise ConfigError: the identity can't be used, or is missing.
    @raise OSError: it can't be kept; what was there before stays.
    """
    kept = read_console_files(directory)
    if kept.identity is None:
        raise ConfigError("The router is not enrolled.")
    bundle = open_bundle(envelope, kept.identity.keys, kept.identity.guid, kept.newest)
    signers = _known_keys(bundle.signing_keys)
    try:
        open_bundle(envelope, signers, kept.identity.guid)
    except BundleRefused:
        raise BundleRefused("The bundle is signed by a key that is not among those of the console in it.") from None
    refused = os.path.join(directory, REFUSED)
    if os.path.lexists(refused):
        # Before the bundle: it may be the one that was refused, and is to be tried again.
        file_system.unlink(refused)
    if not any(each.digest == digest(envelope) for each in kept.bundles):
        write_state(directory, NEXT, envelope, file_system)
    identity = replace(
        kept.identity,
        name=bundle.router.name,
        authorities=_joined(bundle.authorities, kept.identity.authorities),
        signing_keys=_joined(bundle.signing_keys, kept.identity.signing_keys),
    )
    if identity != kept.identity:
        write_identity(directory, identity, file_system)
    return bundle


def mark_applied(directory: str, name: str, file_system: FileSystem = _FILE_SYSTEM) -> None:
    """
    Make the bundle that came last the one to go on with, once it is applied. From then on only what it says of CA
    certificates and signing keys is trusted.

    @param name: the L{digest} of the bundle that was applied. Another one that has come since stays the next.
    @raise ConfigError: the identity can't be used.
    @raise OSError: it can't be made so; it is tried again with the next start.
    """
    kept = read_console_files(directory)
    applied = next((each for each in kept.bundles if each.digest == name), None)
    if applied is None or kept.identity is None:
        return
    if not applied.is_applied:
        file_system.rename(os.path.join(directory, NEXT), os.path.join(directory, CURRENT))
        sync_directory(directory, file_system)
    elif len(kept.bundles) > 1:
        # The newer one, which is not applied, needs its own keys.
        return
    bundle = applied.bundle
    identity = replace(kept.identity, authorities=bundle.authorities, signing_keys=bundle.signing_keys)
    if identity != kept.identity:
        write_identity(directory, identity, file_system)


def refuse_next(directory: str, name: str, error: str, file_system: FileSystem = _FILE_SYSTEM) -> None:
    """
    Remove the bundle that comes next, and remember why: it can't be applied, and a start with it would fail.

    @param name: its L{digest}. Another one that has come since stays, as does one that was applied.
    @raise ConfigError: the identity can't be used.
    @raise OSError: it can't be removed or remembered; what can be done of both is done.
    """
    kept = read_console_files(directory)
    if not any(each.digest == name and not each.is_applied for each in kept.bundles):
        return
    refused = RefusedBundle(digest=name, error=error[:_LONGEST_ERROR], version=installed_version())
    try:
        write_state(directory, REFUSED, _encode(refused), file_system)
    finally:
        file_system.unlink(os.path.join(directory, NEXT))
        sync_directory(directory, file_system)


def forget_console(directory: str, file_system: FileSystem = _FILE_SYSTEM) -> None:
    """
    Remove identity and bundles, the identity first: without it bundles are not read.

    @raise OSError: a file can't be removed.
    """
    for name in (IDENTITY, NEXT, CURRENT, REFUSED, ENROLLING):
        for each in (name, f"{name}.new"):
            try:
                file_system.unlink(os.path.join(directory, each))
            except FileNotFoundError:
                continue
    if os.path.isdir(directory):
        sync_directory(directory, file_system)


def _identity(content: bytes) -> RouterIdentity:
    try:
        identity = msgspec.json.decode(content, type=RouterIdentity)
        if not identity.keys:
            raise ValueError
    except (ValueError, RecursionError):
        # What it holds is a secret: the error may quote it.
        raise ConfigError(f"{IDENTITY} is damaged. Remove it and enrol this router again.") from None
    return identity


def _refused(directory: str) -> RefusedBundle | None:
    """Return the bundle that this version could not apply. Without this file a bundle is tried once more, no worse."""
    try:
        content = read_state(directory, REFUSED)
        refused = None if content is None else msgspec.json.decode(content, type=RefusedBundle)
    except (ConfigError, ValueError, RecursionError):
        return None
    return refused if refused is not None and refused.version == installed_version() else None


def _known_keys(texts: Iterable[str]) -> dict[str, Ed25519PublicKey]:
    keys: dict[str, Ed25519PublicKey] = {}
    for text in texts:
        try:
            key = public_key(text)
        except ValueError:
            raise BundleRefused("The bundle has a signing key that is none.") from None
        keys[key_id(key)] = key
    return keys


def _joined(first: Iterable[str], second: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))
