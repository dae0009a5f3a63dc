"""
Checks of the fields of a rule that say who may send to its connectors, and what their sender asks for.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import structs

from webhookrx.diagnostics import Diagnostic, Path, diagnose, nearest, quoted, quoted_short
from webhookrx.guard.word_reader import GuardValues, read_words
from webhookrx.guard.words import GuardWords
from webhookrx.intake.path_patterns import has_group
from webhookrx.router.rules.rule import Rule


def check_guard(rule: Rule, path: Path, *, with_paths: bool = True) -> Iterator[Diagnostic]:
    """
    Yield what is wrong with these fields of the rule at a path, as far as the rules file shows.

    @param with_paths: also whether its paths have the group in which tokens are to be, for which they are compiled.
    """
    words = rule.guard_words
    values, found = read_words(words)
    for each in found:
        # A field that is no list in the file has no index.
        more = each.path[1:] if each.path[0] in ("allow", "allow_clients") else ()
        yield structs.replace(each, path=(*path, each.path[0], *more))
    for name in words.without_sender:
        yield diagnose("needs-sender", (*path, name), "It is about a sender, and there is none: give sender, too.")
    if rule.sender:
        yield from _check_sender(words, None if found else values, path)
    for name, files in (
        ("secrets_file", words.secrets_file),
        ("auth_token_file", words.auth_token_file),
        ("ca_file", (rule.ca_file,) if rule.ca_file else ()),
    ):
        if any(not file.startswith("/") for file in files):
            # It is not quoted: it may be what belongs into the file.
            sentence = "It is not an absolute path of a file; it begins with a slash, such as /etc/webhookrx/secrets."
            yield diagnose("relative-path", (*path, name), sentence)
    yield from _check_clients(rule, path)
    if with_paths and values.token_place.kind == "path":
        yield from _check_token_group(rule, values.token_place.name, path)


def _check_sender(words: GuardWords, values: GuardValues | None, path: Path) -> Iterator[Diagnostic]:
    """
    Yield what is wrong if routers have the sender that is built in; each may have one of its own in its place.

    @param values: None where one of them is wrong already.
    """
    # It takes a megabyte of memory, which a receiver without senders does not need.
    from webhookrx.guard.sender_fit import SenderFit
    from webhookrx.senders.definitions import builtin_definition, builtin_names
    from webhookrx.senders.signatures.verifier import asks_for_secrets

    sender = builtin_definition(words.sender)
    if sender is None:
        near = nearest(words.sender, builtin_names())
        sentence = f"{quoted_short(words.sender)} is not built in, so each router needs it in --senders. {near}"
        yield diagnose("sender-not-built-in", (*path, "sender"), sentence.rstrip())
    if sender is None or values is None:
        return
    fit = SenderFit(words, values, sender)
    for each in fit.found:
        yield diagnose("sender-misfit", (*path, *each.path), each.sentence)
    if fit.verify != "off" and not words.secrets_file and asks_for_secrets(sender):
        sentence = "There is no secret to check requests with: give secrets_file, or say verify: off."
        yield diagnose("sender-misfit", (*path, "sender"), sentence)


def _check_clients(rule: Rule, path: Path) -> Iterator[Diagnostic]:
    if rule.ca_file and rule.protocol == "HTTP":
        sentence = "HTTP has no client certificates; leave ca_file out, or write HTTPS."
        yield diagnose("http-with-ca-file", (*path, "ca_file"), sentence)
    elif rule.allow_clients and not (rule.ca_file and rule.protocol == "HTTPS"):
        sentence = "No client shows a certificate, so that all would be refused: it needs HTTPS and ca_file."
        yield diagnose("needs-ca-file", (*path, "allow_clients"), sentence)


def _check_token_group(rule: Rule, name: str, path: Path) -> Iterator[Diagnostic]:
    for pattern in rule.paths:
        if not has_group(pattern, name):
            sentence = f"The path {quoted_short(pattern)} has no group {quoted(name)}, such as (?P<{name}>[^/]+)."
            yield diagnose("no-token-group", (*path, "auth_token_in"), sentence)
