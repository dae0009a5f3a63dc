"""
The C{format=} and C{template=} options that every observer of lines shares.
"""

from __future__ import annotations

from collections.abc import Callable

from webhookrx.config.spec_options import SpecOptions
from webhookrx.message.encoders import encode_line
from webhookrx.message.message import Message
from webhookrx.message.template import Template

#: A message as one line, its line end included.
RenderLine = Callable[[Message], bytes]

#: The options that L{render_line_for} reads.
LINE_OPTIONS = ("format", "template")

_FORMATS = ("json", "template")


def render_line_for(options: SpecOptions) -> RenderLine:
    """
    Return what makes a line of a message: JSON, or a template when one is given.

    @raise webhookrx.errors.ConfigError: the format is unknown, the template does not parse, or the two do not go
        together.
    """
    template = options.read("template", None, Template.parse)
    wanted = options.choice("format", _FORMATS, "json" if template is None else "template")
    if wanted == "json":
        if template is not None:
            raise options.problem("template= goes with format=template, not with format=json")
        return encode_line
    if template is None:
        raise options.problem("format=template needs template=TEXT")
    return template.render_line
