"""
All functions, in one table, and the table of the docs.
"""

from __future__ import annotations

from typing import Final

from webhookrx.router.expressions.addresses import ADDRESS_FUNCTIONS
from webhookrx.router.expressions.csv_functions import CSV_FUNCTIONS
from webhookrx.router.expressions.data_functions import DATA_FUNCTIONS
from webhookrx.router.expressions.event_functions import EVENT_FUNCTIONS
from webhookrx.router.expressions.field_functions import FIELD_FUNCTIONS
from webhookrx.router.expressions.function import Function
from webhookrx.router.expressions.json_files import FILE_FUNCTIONS
from webhookrx.router.expressions.kv_functions import KV_FUNCTIONS
from webhookrx.router.expressions.patterns import PATTERN_FUNCTIONS
from webhookrx.router.expressions.text_functions import TEXT_FUNCTIONS
from webhookrx.router.expressions.time_functions import TIME_FUNCTIONS

FUNCTIONS: Final[dict[str, Function]] = {
    function.name: function
    for functions in (
        FIELD_FUNCTIONS,
        DATA_FUNCTIONS,
        TEXT_FUNCTIONS,
        PATTERN_FUNCTIONS,
        KV_FUNCTIONS,
        CSV_FUNCTIONS,
        EVENT_FUNCTIONS,
        TIME_FUNCTIONS,
        ADDRESS_FUNCTIONS,
        FILE_FUNCTIONS,
    )
    for function in functions
}

FOREIGN: Final = {
    "rename": "Write meta.new = move(meta.old).",
    "replace": "Write str_replace().",
    "contains": "Write includes().",
    "strip": "Write str_strip().",
    "trim": "Write str_strip().",
    "split": "Write parse_csv(), with delimiter=.",
    "length": "Write len().",
    "now": 'Write get_timestamp(stamp="recvd"), when the message came.',
    "uuid7": "Write uuid().",
    "set_pri": "Set log.severity_number and log.severity_text.",
    "update_metric": "It is left out; a Probe step counts messages.",
    "metrics_labels": "It is left out; a Probe step counts messages.",
    "dedup_metrics_labels": "It is left out; a Probe step counts messages.",
    "load_vars": "It is left out; set the variables.",
    "has_sdata": "Messages of a router have no structured data.",
    "get_sdata": "Messages of a router have no structured data.",
    "failure_info": "A step that fails is counted, and may be noted: on_error: tag.",
    "failure_info_enable": "A step that fails is counted, and may be noted: on_error: tag.",
    "format_cef": "It is left out; write texts with +.",
    "format_leef": "It is left out; write texts with +.",
    "format_xml": "It is left out; write texts with +.",
    "parse_windows_eventlog_xml": "It is left out; parse_xml() reads any XML.",
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
