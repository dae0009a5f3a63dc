"""
The subject console: makes, backs up and restores the files of a console, and lets people in whom it lets in no more.
"""

from __future__ import annotations

import argparse
import os
import stat
from typing import TextIO

from webhookrx.commands.terminal import DONE, Verbs, print_table
from webhookrx.config.files import public_warning
from webhookrx.console import upkeep
from webhookrx.console.api.principal import ROLES
from webhookrx.console.people import break_glass
from webhookrx.console.people.break_glass import AccountChange
from webhookrx.console.settings import checked_url

_DB = "/var/lib/webhookrx-console/console.sqlite"
_URL = "https://console.example.com"


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the verbs of the subject to its parser."""
    parser.description = "Make, back up and restore the files of a console, and change its people, as its own user."
    verbs = Verbs(parser)
    init = "make the database and the keys of a new console, and the link by which its first admin signs up"
    _with_url(_with_db(verbs.add("init", _init, init, f"webhookrx console init --db {_DB} --url {_URL}")))
    _add_user(verbs)
    backup = verbs.add(
        "backup",
        _backup,
        "copy the database while the console runs",
        f"webhookrx console backup --db {_DB} FILE",
    )
    _with_db(backup)
    backup.add_argument("file", metavar="FILE", help="the copy; it must not be there yet")
    backup.add_argument("--with-keys", metavar="FILE", help="also write the keys to this file, encrypted")
    _with_passphrase(backup)
    restore = verbs.add(
        "restore",
        _restore,
        "put a copy in the place of the database of a console that does not run",
        f"webhookrx console restore --db {_DB} FILE",
    )
    _with_db(restore)
    restore.add_argument("file", metavar="FILE", help="the copy")
    restore.add_argument("--keys", metavar="FILE", help="also restore the keys from this file")
    restore.add_argument("--replace", action="store_true", help="replace a console that is there already")
    _with_passphrase(restore)
    adopt = "raise the revision above the highest that routers have, after an older backup was restored"
    _with_db(verbs.add("adopt", _adopt, adopt, f"webhookrx console adopt --db {_DB}"))


def _add_user(verbs: Verbs) -> None:
    user = _with_url(
        _with_db(
            verbs.add(
                "user",
                _user,
                "list, add or change people, also while the console runs and nobody can sign in",
                f"webhookrx console user --db {_DB} mara --create --role admin --password-file FILE",
            )
        )
    )
    user.add_argument("name", metavar="NAME", nargs="?", help="the person; without one, all are listed")
    user.add_argument("--create", action="store_true", help="add the person; needs --password-file")
    user.add_argument("--role", choices=ROLES, help="what the person may do; viewer for a new one")
    user.add_argument(
        "--tap", action=argparse.BooleanOptionalAction, help="whether the person may see contents of messages"
    )
    user.add_argument("--password-file", metavar="FILE", help="a file with the new password, which ends API tokens")
    user.add_argument("--keep-tokens", action="store_true", help="API tokens go on after a new password")
    enabled = user.add_mutually_exclusive_group()
    enabled.add_argument("--disable", action="store_true", help="let the person and all API tokens in no more")
    enabled.add_argument("--enable", action="store_true", help="let a disabled person in again")
    user.add_argument(
        "--first-admin", action="store_true", help="make a new link for the first admin, while there is nobody"
    )


def _with_db(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("--db", metavar="FILE", required=True, help="the database of the console")
    return parser


def _with_url(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("--url", metavar="URL", help="that of the console, for the link of the first admin")
    return parser


def _with_passphrase(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--passphrase-file", metavar="FILE", help="a file with the passphrase of the keys, 16 bytes or more"
    )


def _init(asked: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    path = os.path.abspath(asked.db)
    url = _url(asked)
    upkeep.init_console(path)
    print(f"Made {path}, and the keys of the console beside it. Back up both.", file=out)
    _print_first_admin(path, url, out)
    return DONE


def _user(asked: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    path = os.path.abspath(asked.db)
    enabled = True if asked.enable else False if asked.disable else None
    secret: str | None = asked.password_file
    change = AccountChange(asked.create, asked.role, asked.tap, enabled, secret, asked.keep_tokens)
    if asked.first_admin or asked.name is None:
        if change != AccountChange() or (asked.first_admin and asked.name is not None):
            asked.parser.error("give the NAME of a person for this, and no --first-admin")
        if asked.first_admin:
            _print_first_admin(path, _url(asked), out)
        else:
            rows = [
                (
                    each.name,
                    each.role,
                    "tap" if each.tap else "",
                    "single sign-on" if each.single_sign_on else "",
                    "" if each.enabled else "disabled",
                )
                for each in break_glass.list_people(path)
            ]
            print_table(out, rows)
            if not rows:
                print("There is nobody yet: --first-admin --url URL makes a link for the first admin.", file=out)
        return DONE
    if change == AccountChange() or (asked.keep_tokens and secret is None):
        asked.parser.error("say what is to be changed, such as --password-file FILE; --keep-tokens goes with that")
    if secret is not None:
        _warn_of_readers(secret, err)
    break_glass.change_account(path, asked.name, change)
    print(f"Added {asked.name}." if change.create else f"Changed {asked.name}, whose sessions have ended.", file=out)
    return DONE


def _print_first_admin(path: str, url: str, out: TextIO) -> None:
    secret = break_glass.offer_first_admin(path)
    # Behind the #: browsers send that to no server, and so no log of a proxy has it.
    print(f"The first admin signs up by this link, once and within an hour: {url}/first-admin#{secret}", file=out)


def _url(asked: argparse.Namespace) -> str:
    return "" if asked.url is None else checked_url(asked.url)


def _backup(asked: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    keys = _keys(asked, "with_keys", err)
    revision = upkeep.back_up(os.path.abspath(asked.db), os.path.abspath(asked.file), *keys)
    print(f"Copied revision {revision}{'' if keys[0] else '; the keys are not in the copy'}.", file=out)
    return DONE


def _restore(asked: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    keys = _keys(asked, "keys", err)
    revision = upkeep.restore(os.path.abspath(asked.db), os.path.abspath(asked.file), *keys, replace=asked.replace)
    print(f"Restored revision {revision}.", file=out)
    return DONE


def _adopt(asked: argparse.Namespace, out: TextIO, err: TextIO) -> int:
    before, after = upkeep.adopt(os.path.abspath(asked.db))
    if before == after:
        print(f"No router has a later revision than {before}.", file=out)
    else:
        print(f"The revision was {before}, and is {after}.", file=out)
    return DONE


def _keys(asked: argparse.Namespace, name: str, err: TextIO) -> tuple[str, str]:
    """Return the file of the keys, and that of the passphrase; both are empty without them."""
    keys: str | None = getattr(asked, name)
    passphrase: str | None = asked.passphrase_file
    if (keys is None) != (passphrase is None):
        asked.parser.error(f"--{name.replace('_', '-')} and --passphrase-file go together")
    if keys is None or passphrase is None:
        return "", ""
    _warn_of_readers(passphrase, err)
    return os.path.abspath(keys), os.path.abspath(passphrase)


def _warn_of_readers(path: str, err: TextIO) -> None:
    if os.path.exists(path):
        warning = public_warning(path, stat.S_IMODE(os.stat(path).st_mode))
        if warning:
            print(f"warning: {warning}", file=err)
