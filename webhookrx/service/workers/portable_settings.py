"""
Settings for another process: all that MessagePack has not, and a connector rule may hold.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from msgspec import Raw, structs
from msgspec.msgpack import Ext

from webhookrx.router.steps.step import SetField, Step
from webhookrx.settings import Settings, Source

# Extension types of MessagePack, for numbers that it has not.
_EXACT_NUMBER: Final = 1
_LARGE_INTEGER: Final = 2
_INTEGERS: Final = range(-(1 << 63), 1 << 64)


def portable(settings: Settings) -> Settings:
    """
    Return the same settings, but numbers in Set Field steps that MessagePack has not are extensions of it.
    L{number} makes them what they were. What is kept for the next start stays with who keeps it.
    """
    router = settings.router and replace(settings.router, good=b"")
    return replace(settings, sources=tuple(map(_portable_source, settings.sources)), router=router)


def _portable_source(source: Source) -> Source:
    connector = source.connector
    if connector is None or not any(step.set for step in connector.preprocessing.steps):
        return source
    steps = tuple(map(_portable_step, connector.preprocessing.steps))
    preprocessing = structs.replace(connector.preprocessing, steps=steps)
    return replace(source, connector=replace(connector, preprocessing=preprocessing))


def _portable_step(step: Step) -> Step:
    if isinstance(step.set, SetField):
        return structs.replace(step, set=_portable_field(step.set))
    return structs.replace(step, set=tuple(map(_portable_field, step.set))) if step.set else step


def _portable_field(field: SetField) -> SetField:
    return structs.replace(field, value=_portable_value(field.value))


def _portable_value(value: Any) -> Any:
    match value:
        case Raw():
            return Ext(_EXACT_NUMBER, bytes(value))
        case int() if value not in _INTEGERS:
            return Ext(_LARGE_INTEGER, f"{value:x}".encode())
        case list():
            return list(map(_portable_value, value))
        case dict():
            return {name: _portable_value(member) for name, member in value.items()}
    return value


def number(kind: int, text: memoryview) -> Raw | int:
    """Return the number that such an extension stands for; it is the C{ext_hook} of a decoder."""
    return Raw(bytes(text)) if kind == _EXACT_NUMBER else int(bytes(text), 16)
