"""
The codes of what can be wrong with any such file.
"""

from __future__ import annotations

from typing import Final

from webhookrx.diagnostics import ERROR, WARNING, Code

CODES: Final = (
    Code("not-utf8", ERROR, "The file is not UTF-8 text."),
    Code("file-too-large", ERROR, "The file is larger than 4 MiB."),
    Code("yaml-syntax", ERROR, "The file is not YAML; nothing behind this place was looked at."),
    Code("control-character", ERROR, "A text holds a control character other than tab and line break."),
    Code("too-deep", ERROR, "Lists and mappings are nested deeper than 64."),
    Code("too-many-values", ERROR, "The file holds too many values, once its aliases are followed."),
    Code("too-many-mistakes", ERROR, "The file has more than 1,000 mistakes; the others were not looked for."),
    Code("bad-alias", ERROR, "An alias names nothing that is written before it, or something that it is a part of."),
    Code("yaml-tag", ERROR, "YAML tags such as `!name` are not used; such a text is written in quotes."),
    Code("several-documents", ERROR, "The file holds more than one YAML document."),
    Code("empty-file", ERROR, "The file holds nothing; it may be one that is still being written."),
    Code("unknown-key", ERROR, "There is no such key."),
    Code("duplicate-key", ERROR, "A key is there twice, `-` and `_` being the same."),
    Code("bad-key", ERROR, "A key is not plain text."),
    Code("bad-merge", ERROR, "What `<<` takes in is not a mapping, or has a `<<` of its own."),
    Code("missing-key", ERROR, "A key that must be there is missing."),
    Code("no-value", WARNING, "A key has no value, so its default holds."),
    Code("missing-value", ERROR, "A key that must have a value, or an item of a list, has none."),
    Code("wrong-type", ERROR, "A value is of another type than the one that is wanted."),
    Code("bad-value", ERROR, "A value is out of range."),
)
