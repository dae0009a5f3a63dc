"""
The C{format=} and C{template=} options that every observer of lines shares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from webhookrx.errors import ConfigError
from webhookrx.message.json_lines import encode_line
from webhookrx.message.message import Message
from webhookrx.message.template import Template

#: A message as one line, its line end included.
RenderLine = Callable[[Message], bytes]

#: The options that L{render_line_for} reads.
LINE_OPTIONS = ("format", "template")

_FORMATS = ("json", "template")


def render_line_for(name: str, options: Mapping[str, str]) -> RenderLine:
    """
    Return what makes a line of a message: JSON, or a template when one is given.

    @param name: the observer's name, for errors.
    @raise ConfigError: the format is unknown, the template does not parse, or the two do not go together.
    """
    template = options.get("template")
    wanted = options.get("format", "json" if template is None else "template")
    if wanted not in _FORMATS:
        raise ConfigError(f"observer {name!r}: format={wanted} is not one of {', '.join(_FORMATS)}")
    if wanted == "json":
        if template is not None:
            raise ConfigError(f"observer {name!r}: template= goes with format=template, not with format=json")
        return encode_line
    if template is None:
        raise ConfigError(f"observer {name!r}: format=template needs template=TEXT")
    try:
        return Template.parse(template).render_line
    except ValueError as error:
        raise ConfigError(f"observer {name!r}: template={template!r}: {error}") from error
