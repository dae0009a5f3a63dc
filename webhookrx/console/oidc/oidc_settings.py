"""
The settings of single sign-on: frozen values, made of the options of the console's command.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from webhookrx.config.files import absolute, public_warning, read_file
from webhookrx.config.option import Kind, Option, OptionScope
from webhookrx.config.option_reader import OptionReader
from webhookrx.console.api.principal import ROLES, RoleName
from webhookrx.diagnostics import quoted
from webhookrx.errors import ConfigError

OIDC_OPTIONS: Final = (
    Option(
        "oidc-issuer",
        OptionScope.COMMAND,
        Kind.TEXT,
        "people sign in at this provider of OpenID Connect: its issuer, exactly as it names itself",
        value="URL",
    ),
    Option(
        "oidc-client-id",
        OptionScope.COMMAND,
        Kind.TEXT,
        "how the provider knows this console, which it sends people back to at URL/sign-in/oidc/callback",
        value="ID",
    ),
    Option(
        "oidc-secret-file",
        OptionScope.COMMAND,
        Kind.FILE,
        "a file with nothing but the client's secret",
        value="FILE",
    ),
    Option(
        "oidc-role",
        OptionScope.COMMAND,
        Kind.TEXT,
        "who has this claim in the ID token has this role, such as groups=ops:admin+tap; of several the highest "
        "counts, and who has none is not let in; may be repeated",
        value="CLAIM=VALUE:ROLE[+tap]",
        repeat=True,
    ),
    Option(
        "oidc-only",
        OptionScope.COMMAND,
        Kind.FLAG,
        "nobody signs in by a password, but within an hour after webhookrx console user has set it",
        default="no",
    ),
)

_LONGEST_SECRET: Final = 4096
_PARTNERS: Final = {
    "oidc-client-id": "how the provider knows this console",
    "oidc-secret-file": "the file with the client's secret",
    "oidc-role": "who has which role, such as --oidc-role groups=ops:admin",
}
_ROLE: Final = re.compile(r"([^=]+)=(.+):(\w+)(\+tap)?", re.DOTALL)


@dataclass(frozen=True)
class RoleClaim:
    """
    Which role a claim gives.

    @ivar claim: its name; with dots, if no claim has that name, the way to a member of one.
    @ivar value: what it is, or holds.
    """

    claim: str
    value: str
    role: RoleName
    tap: bool

    def __str__(self) -> str:
        return f"{self.claim}={self.value}:{self.role}{'+tap' if self.tap else ''}"

    def is_in(self, claims: dict[str, Any]) -> bool:
        """Return whether somebody has it."""
        found = claims.get(self.claim)
        if self.claim not in claims:
            found = claims
            for name in self.claim.split("."):
                found = found.get(name) if isinstance(found, dict) else None
        held = found if isinstance(found, list) else [found]
        return self.value in [_text(each) for each in held]


@dataclass(frozen=True)
class OidcSettings:
    """
    The provider, and what its word is good for.

    @ivar issuer: as it names itself, exactly.
    @ivar secret: of the client.
    @ivar roles: which claims give which role.
    @ivar only: people sign in there alone.
    """

    issuer: str
    client_id: str
    secret: str = field(repr=False)
    secret_file: str
    roles: tuple[RoleClaim, ...]
    only: bool = False


def read_oidc(options: OptionReader) -> OidcSettings | None:
    """Make them of the options; None without a provider, or with mistakes, which are noted."""
    given = [option.name for option in OIDC_OPTIONS if options.raw(option.name)]
    if "oidc-issuer" not in given:
        for name in given:
            options.error(name, f"--{name} needs --oidc-issuer.")
        return None
    for name, meaning in _PARTNERS.items():
        if name not in given:
            options.error("oidc-issuer", f"--{name} is missing: {meaning}.")
    issuer = options.parsed("oidc-issuer", checked_issuer)
    client_id = options.parsed("oidc-client-id", _checked_id)
    file = options.value("oidc-secret-file")
    secret = None if file is None else options.attempt("oidc-secret-file", _read_secret, absolute(file))
    roles = [options.attempt("oidc-role", parse_role, each.text) for each in options.raw("oidc-role")]
    only = options.flag("oidc-only", False)
    kept = tuple(each for each in roles if each is not None)
    if issuer is None or client_id is None or secret is None or file is None or not kept:
        return None
    return OidcSettings(issuer, client_id, secret, absolute(file), kept, only)


def parse_role(text: str) -> RoleClaim:
    """
    Read C{CLAIM=VALUE:ROLE[+tap]}.

    @raise ConfigError: it is something else.
    """
    found = _ROLE.fullmatch(text)
    if found is None:
        raise ConfigError(f"{quoted(text)} is not CLAIM=VALUE:ROLE or CLAIM=VALUE:ROLE+tap, such as groups=ops:admin.")
    claim, value, named, tap = found.groups()
    role = next((each for each in ROLES if each == named), None)
    if role is None:
        raise ConfigError(f"{quoted(named)} is no role: {', '.join(ROLES)}.")
    return RoleClaim(claim, value, role, tap is not None)


def checked_issuer(text: str) -> str:
    """
    Return an issuer.

    @raise ConfigError: it is no URL, has more than scheme, host and path, or is not encrypted.
    """
    if not is_endpoint(text, plain=True) or urlsplit(text).query:
        raise ConfigError(f"{quoted(text)} is not the issuer of a provider: https://HOST, perhaps with a path.")
    if not is_endpoint(text, plain=False) and not is_endpoint_here(text):
        raise ConfigError(
            f"{quoted(text)} is not encrypted: https is needed, unless the host is of this machine alone."
        )
    return text


def is_endpoint(text: str, *, plain: bool) -> bool:
    """
    Return whether a text is a URL of HTTPS that can be asked, without a name and password in it.

    @param plain: HTTP will do, too.
    """
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    is_scheme = parts.scheme == "https" or (plain and parts.scheme == "http")
    is_plain_text = text.isascii() and text.isprintable() and " " not in text
    return bool(is_scheme and is_plain_text and parts.hostname and port != 0 and "@" not in parts.netloc) and (
        "#" not in text
    )


def is_endpoint_here(text: str) -> bool:
    """Return whether a text is a URL of plain HTTP that never leaves this machine."""
    if not is_endpoint(text, plain=True):
        return False
    host = urlsplit(text).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _text(value: object) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else None


def _checked_id(text: str) -> str:
    if not 0 < len(text) <= 255 or not text.isascii() or not text.isprintable():
        raise ConfigError("A client has 1 to 255 printable ASCII characters.")
    return text


def _read_secret(path: str) -> str:
    content, mode = read_file(path)
    warning = public_warning(path, mode)
    if warning:
        raise ConfigError(warning)
    try:
        secret = content.decode().strip()
    except UnicodeDecodeError:
        raise ConfigError(f"{quoted(path)} is not UTF-8.") from None
    if not 0 < len(secret) <= _LONGEST_SECRET or not secret.isprintable():
        raise ConfigError(f"{quoted(path)} is to hold the client's secret alone, in one line.")
    return secret
