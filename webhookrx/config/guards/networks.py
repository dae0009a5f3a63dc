"""
Lists of networks by name, which guards allow, and the files that hold them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from webhookrx.config.files import absolute, read_file, signature_of
from webhookrx.config.option_reader import OptionReader
from webhookrx.diagnostics import quoted
from webhookrx.errors import ConfigError
from webhookrx.intake.networks import LIST_NAME, read_networks
from webhookrx.settings import Signature


class NetworkList(NamedTuple):
    """
    A file with a list of networks.

    @ivar file: its absolute path.
    @ivar at: see L{read_networks}.
    """

    name: str
    file: str
    at: str = ""


def read_network_list(listed: NetworkList) -> tuple[str, ...]:
    """
    Return the networks of a list.

    @raise ConfigError: the file can't be used.
    """
    try:
        return tuple(map(str, read_networks(read_file(listed.file)[0], listed.at)))
    except ValueError as error:
        raise ConfigError(f"{quoted(listed.file)}: {error}") from None


class NetworkLists(NamedTuple):
    """
    The lists of networks of the service.

    @ivar networks: those of each list, by its name.
    @ivar watched: the state of each file from just before it was read, by absolute path.
    """

    networks: Mapping[str, tuple[str, ...]]
    watched: Mapping[str, Signature]


def read_network_lists(options: OptionReader) -> NetworkLists:
    """Return the lists of networks of the service. Mistakes are noted."""
    listed: dict[str, NetworkList] = {}
    networks: dict[str, tuple[str, ...]] = {}
    watched: dict[str, Signature] = {}
    for value in options.raw("network"):
        name, equals, where = value.text.partition("=")
        if not equals or not where:
            options.problems.error(f"{quoted(value.text)} is not a list of networks; write NAME=FILE.", value.origin)
        elif not LIST_NAME.fullmatch(name):
            sentence = f"{quoted(name)} is not the name of a list: it begins with a letter, and has up to 64 letters, "
            options.problems.error(f"{sentence}digits, '.', '_' and '-'.", value.origin)
        elif name in listed:
            options.problems.error(f"The list {quoted(name)} is given twice.", value.origin)
        else:
            found = listed[name] = _network_list(name, where)
            watched[found.file] = signature_of(found.file)
            networks[name] = options.problems.attempt(value.origin, read_network_list, found) or ()
    options.show("network", " ".join(f"{each.name}={each.file}" for each in listed.values()) or "none")
    return NetworkLists(networks, watched)


def _network_list(name: str, where: str) -> NetworkList:
    file, hash_sign, at = where.rpartition("#")
    if hash_sign and (at == "" or at.startswith("/")):
        return NetworkList(name, absolute(file), at)
    return NetworkList(name, absolute(where))
