"""
Whether the options of a guard fit the definition of its sender: what they ask for and it lacks, what it needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from webhookrx.diagnostics import Diagnostic, diagnose, nearest, quoted_short
from webhookrx.quantities import read_flag
from webhookrx.senders.definition import SenderDefinition, Setting
from webhookrx.senders.signatures.scheme import CODES_WITH_URL

if TYPE_CHECKING:
    from webhookrx.guard.word_reader import GuardValues
    from webhookrx.guard.words import GuardWords

SettingValue: TypeAlias = str | bool | tuple[str, ...]


URL_NOT_SIGNED: Final = "It has no effect: this sender does not sign the URL that it sends to. Leave it out."
"""What is wrong with C{public_url} where L{may_sign_url} says no."""


class SenderFit:
    """
    The options of a guard beside the definition of its sender.

    @ivar verify: C{required}, C{note} or C{off}: what counts with this sender.
    @ivar handshake: whether questions of the sender are to be answered.
    @ivar settings: values of the settings of the sender.
    @ivar found: what does not fit; the path of each begins with the option, as a rule spells it.
    """

    def __init__(self, words: GuardWords, values: GuardValues, sender: SenderDefinition) -> None:
        self.verify = values.verify or "required"
        if not sender.verify:
            self.verify = "off"
        self.handshake = bool(sender.handshake) if words.handshake is None else words.handshake
        self.settings: dict[str, SettingValue] = {}
        self.found = [*self._lacks(values, sender), *self._set(words, sender)]
        if not words.public_url and self._signs_url(sender):
            sentence = (
                f"The definition {quoted_short(sender.id)} needs public_url: what is signed has the URL in it that the "
                "sender sends to."
            )
            self.found.append(diagnose("needs-public-url", ("sender",), sentence))

    def _lacks(self, values: GuardValues, sender: SenderDefinition) -> Iterator[Diagnostic]:
        name = quoted_short(sender.id)
        if values.verify not in (None, "off") and not sender.verify:
            sentence = f"Nothing can be verified: the definition {name} has no verify."
            yield diagnose("sender-lacks", ("verify",), sentence)
        if values.split == "yes" and not sender.split:
            sentence = f"The definition {name} has no split; write lines, documents or a JSON pointer."
            yield diagnose("sender-lacks", ("split",), sentence)
        if values.idempotency is not None and not sender.delivery:
            sentence = (
                f"Deliveries of this sender have no ids: the definition {name} has no delivery; write idempotency: off."
            )
            yield diagnose("sender-lacks", ("idempotency",), sentence)
        if self.handshake and not sender.handshake:
            sentence = f"This sender asks nothing: the definition {name} has no handshake."
            yield diagnose("sender-lacks", ("handshake",), sentence)

    def _set(self, words: GuardWords, sender: SenderDefinition) -> Iterator[Diagnostic]:
        """Read the settings of the sender, and yield what is wrong with them."""
        for name, texts in words.sender_settings.items():
            setting = sender.settings.get(name)
            if setting is None:
                known = f"which are {', '.join(sender.settings)}" if sender.settings else "of which there are none"
                near = nearest(name, sender.settings)
                sentence = f"{quoted_short(name)} is no setting of {quoted_short(sender.id)}, {known}. {near}".rstrip()
                yield diagnose("sender-setting", ("sender_settings", name), sentence)
                continue
            try:
                self.settings[name] = setting_value(setting, texts)
            except ValueError as error:
                yield diagnose("sender-setting", ("sender_settings", name), f"{quoted_short(name)}: {error}")
        for name, setting in sender.settings.items():
            if setting.needed and name not in words.sender_settings:
                sentence = f"{quoted_short(sender.id)} needs {quoted_short(name)} in sender_settings: {setting.meaning}"
                yield diagnose("sender-setting", ("sender",), sentence)

    def _signs_url(self, sender: SenderDefinition) -> bool:
        """Tell whether a source has to know the URL of itself."""
        schemes = sender.schemes if self.verify != "off" else ()
        proofs = [each.proof.of for each in sender.handshake if each.proof is not None] if self.handshake else []
        return any("{url}" in each.signed or each.code in CODES_WITH_URL for each in schemes) or any(
            "{url}" in of for of in proofs
        )


def may_sign_url(sender: SenderDefinition) -> bool:
    """Tell whether a sender signs, in any way, the URL that it sends to: else C{public_url} has no effect."""
    proofs = [each.proof.of for each in sender.handshake if each.proof is not None]
    claims = [str(texts) for scheme in sender.schemes for texts in scheme.claims.values()]
    texts = [*(scheme.signed for scheme in sender.schemes), *claims, *proofs]
    return any("{url}" in text for text in texts) or any(scheme.code in CODES_WITH_URL for scheme in sender.schemes)


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
