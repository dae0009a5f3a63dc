"""Spec strings of observers, read as the service reads them."""

from __future__ import annotations

from collections.abc import Mapping

from webhookrx.config import observers
from webhookrx.observers.registry import find_spec
from webhookrx.settings import Observer


def parse_observer(text: str) -> Observer:
    """Read a spec string."""
    return observers.parse_observer(text, find_spec)


def default_observer(environ: Mapping[str, str]) -> Observer:
    """Return the observer of a service that names none."""
    return observers.default_observer(environ, find_spec)
