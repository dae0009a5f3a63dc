"""
All functions, in one table, and the table of the docs.
"""

from __future__ import annotations

from typing import Final

from webhookrx.expressions.data_functions import DATA_FUNCTIONS
from webhookrx.expressions.field_functions import FIELD_FUNCTIONS
from webhookrx.expressions.function import Function
from webhookrx.expressions.parsing_functions import PARSING_FUNCTIONS
from webhookrx.expressions.patterns import PATTERN_FUNCTIONS
from webhookrx.expressions.text_functions import TEXT_FUNCTIONS
from webhookrx.expressions.time_functions import TIME_FUNCTIONS

FUNCTIONS: Final[dict[str, Function]] = {
    function.name: function
    for functions in (
        FIELD_FUNCTIONS,
        DATA_FUNCTIONS,
        TEXT_FUNCTIONS,
        PATTERN_FUNCTIONS,
        PARSING_FUNCTIONS,
        TIME_FUNCTIONS,
    )
    for function in functions
}

_IO: Final = "it reads what is not in the message"
_CLOCK: Final = "it does not give the same for the same message"

FOREIGN: Final = {
    "rename": "Write meta.new = move(meta.old).",
    "replace": "Write str_replace().",
    "contains": "Write includes().",
    "strip": "Write str_strip().",
    "trim": "Write str_strip().",
    "split": "Write parse_csv(), with delimiter=.",
    "length": "Write len().",
    "now": f"It is left out: {_CLOCK}.",
    "uuid": f"It is left out: {_CLOCK}.",
    "get_timestamp": "Read log.time_unix_nano.",
    "set_timestamp": "Set log.time_unix_nano.",
    "set_pri": "Set log.severity_number and log.severity_text.",
    "cache_json_file": f"It is left out: {_IO}.",
    "update_metric": "It is left out; a Probe step counts messages.",
    "metrics_labels": "It is left out; a Probe step counts messages.",
    "vars": "It is left out; write an object with the variables.",
    "load_vars": "It is left out; set the variables.",
    "datetime": "It is left out; strptime() gives nanoseconds since the epoch.",
    "isodate": 'Write strptime(…, "%Y-%m-%dT%H:%M:%S%z").',
    "format_isodate": 'Write strftime("%Y-%m-%dT%H:%M:%SZ", …).',
    "format_kv": "It is left out; write texts with +.",
    "format_csv": "It is left out; write texts with +.",
    "parse_xml": "It is left out.",
    "parse_cef": "It is left out.",
    "parse_leef": "It is left out.",
    "parse_windows_eventlog_xml": "It is left out.",
    "bytes": "It is left out: messages hold texts.",
    "digest": "Write md5(), sha1(), sha256() or sha512().",
    "dict": 'Write an object: {"name": value}.',
    "list": "Write a list: [value].",
    "json_object": 'Write json() or an object: {"name": value}.',
}
"""Functions that people will look for, most of them FilterX's, and what to do without them."""


def function_table() -> str:
    """Return the table of functions for the docs."""
    lines = ["| function | what it returns |", "|---|---|"]
    for function in FUNCTIONS.values():
        usage = f"{function.name}({function.usage})".replace("|", "\\|")
        lines.append(f"| `{usage}` | {function.summary} |")
    return "".join(f"{line}\n" for line in lines)
