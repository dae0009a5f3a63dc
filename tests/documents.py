"""
The documents of the project: their blocks, links, and the tables that are made from the code.

C{python -m tests.documents} writes the tables anew.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from configparser import ConfigParser
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tests.api_page import observer_api
from tests.refusals import cause_table
from tests.sender_pages import PAGES, page_list, sender_page
from webhookrx.config.limits import limit_table
from webhookrx.config.options import option_table
from webhookrx.config.store_options import store_option_table
from webhookrx.console.api.openapi import problem_table, route_table
from webhookrx.console.routes import CONSOLE_ROUTES
from webhookrx.console.settings import console_option_table
from webhookrx.console.status import CONSOLE_METRICS
from webhookrx.errors import REASONS
from webhookrx.http.states import TRANSITIONS
from webhookrx.observers.registry import find_spec
from webhookrx.operations.metric import Metric
from webhookrx.operations.metrics import METRICS
from webhookrx.relay.registry import NAMES, find_kind
from webhookrx.relay.settings import relay_option_table
from webhookrx.relay.status import OWN_METRICS
from webhookrx.router.expressions import function_table
from webhookrx.router.rules.schema import code_table, host_table, rule_table, schema_text, step_table
from webhookrx.senders.answer_tables import answer_table, behaviour_table, handshake_table
from webhookrx.senders.tables import entry_code_table, entry_table, sender_table, severity_table, split_table

ROOT = Path(__file__).resolve().parent.parent

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^()\s]+)\)")
_MARKUP = re.compile(r"[CL]\{(?:[^{}<]*<)?([^{}<>]*)>?\}")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


class Block(NamedTuple):
    """A fenced block: the language behind its fence, and its text."""

    language: str
    text: str


def status_table() -> str:
    """Return the table of statuses, lowest first."""
    rows = [(200, "", "The message is safe, as far as `ack` promises.")]
    rows += sorted((reason.status, f"`{reason.word}`", reason.detail) for reason in REASONS)
    lines = ["| status | reason | meaning |", "|---|---|---|"]
    return "".join(f"{line}\n" for line in [*lines, *(f"| {' | '.join(map(str, row))} |" for row in rows)])


def metric_table() -> str:
    """Return the table of metrics, in the order in which they are exposed."""
    return _metrics(METRICS)


def console_metric_table() -> str:
    """Return the table of the metrics of a console."""
    return _metrics(CONSOLE_METRICS)


def relay_metric_table() -> str:
    """Return the table of the metrics that only a relay has."""
    return _metrics(OWN_METRICS)


def _metrics(metrics: Iterable[Metric[Any]]) -> str:
    lines = ["| name | kind | labels | meaning |", "|---|---|---|---|"]
    for metric in metrics:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        lines.append(f"| `{metric.name}` | {metric.kind} | {labels} | {metric.help} |")
    return "".join(f"{line}\n" for line in lines)


def room_map() -> str:
    """Return the rooms of the package, each with the first sentence of its docstring, and the modules beside them."""
    package = ROOT / "webhookrx"
    lines = [_map_line(0, "webhookrx/", package / "__init__.py")]
    for room in _rooms():
        lines.append(_map_line(2 * len(room.relative_to(package).parts), f"{room.name}/", room / "__init__.py"))
    return "".join(["```text\n", *lines, *_modules(package, 2), "```\n"])


def module_map() -> str:
    """Return the modules of each room, each with the first sentence of its docstring."""
    lines = []
    for room in _rooms():
        lines += ["\n", f"## {room.relative_to(ROOT / 'webhookrx')}\n", "\n", "```text\n", *_modules(room, 0), "```\n"]
    return "".join(lines[1:])


def _rooms() -> list[Path]:
    package = ROOT / "webhookrx"
    return sorted({path.parent for path in package.rglob("*.py")} - {package})


def _modules(room: Path, indent: int) -> list[str]:
    return [_map_line(indent, path.name, path) for path in sorted(room.glob("*.py")) if path.name != "__init__.py"]


def _map_line(indent: int, name: str, source: Path) -> str:
    docstring = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(docstring.partition("\n\n")[0].split())
    sentence = _MARKUP.sub(r"\1", re.split(r"(?<=\.)\s", paragraph)[0]).rstrip(".:")
    lead = f"{' ' * indent}{name:<22}"
    return textwrap.fill(f"{lead} {sentence}", 124, subsequent_indent=" " * (len(lead) + 1)) + "\n"


def floors() -> str:
    """Return the floors of the package, the upper one first, as the linter of imports has them."""
    contracts = ConfigParser()
    contracts.read(ROOT / "setup.cfg", encoding="utf-8")
    layers = contracts["importlinter:contract:floors"]["layers"].strip().replace("webhookrx.", "")
    lowest = "interfaces | wire_interfaces"
    with_twisted = layers.replace(f"\n{lowest}\n", f"\n{lowest:<60}Twisted lives from here up\n")
    return f"```text\n{with_twisted}\n```\n"


def state_pictures() -> str:
    """Return the states of a connection as diagrams, drawn from the table of their transitions."""
    lines = []
    for machine, rows in TRANSITIONS.items():
        first, *_ = machine
        lines += ["```mermaid", "stateDiagram-v2", f"    %% {machine.__name__}", f"    [*] --> {first.name}"]
        lines += [f"    {one.name} --> {after.name}: {when}" for before, after, when in rows for one in before]
        lines += ["```", ""]
    return "".join(f"{line}\n" for line in lines[:-1])


#: Observers in docs/reference/stores.md, in its order.
STORES = (
    "kafka",
    "nats",
    "redis",
    "postgresql",
    "s3",
    "clickhouse",
    "elasticsearch",
    "opensearch",
    "splunk-hec",
    "loki",
    "otlp",
)


def store_table(name: str) -> str:
    """Return the options of a store."""
    return store_option_table(find_spec(name))


#: Brokers whose options are in docs/reference/relay.md.
BROKERS = NAMES


def broker_table(name: str) -> str:
    """Return the options of a broker that a relay reads from."""
    return store_option_table(find_kind(name).spec)


TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "rooms": ("ARCHITECTURE.md", room_map),
    "modules": ("docs/explanation/modules.md", module_map),
    "floors": ("ARCHITECTURE.md", floors),
    "connection-states": ("ARCHITECTURE.md", state_pictures),
    "observer-api": ("docs/reference/observer-api.md", observer_api),
    "options": ("docs/reference/options.md", option_table),
    "limits": ("docs/reference/limits.md", limit_table),
    "statuses": ("docs/reference/statuses.md", status_table),
    "causes": ("docs/reference/statuses.md", cause_table),
    "metrics": ("docs/reference/metrics.md", metric_table),
    "relay-options": ("docs/reference/relay.md", relay_option_table),
    "relay-metrics": ("docs/reference/relay.md", relay_metric_table),
    "console-options": ("docs/console/index.md", console_option_table),
    "console-routes": ("docs/console/api.md", partial(route_table, CONSOLE_ROUTES)),
    "console-problems": ("docs/console/api.md", problem_table),
    "console-metrics": ("docs/console/index.md", console_metric_table),
    "connector-rule-fields": ("docs/reference/connector-rules.md", rule_table),
    "connector-rule-steps": ("docs/reference/connector-rules.md", step_table),
    "connector-rule-hosts": ("docs/reference/connector-rules.md", host_table),
    "connector-rule-codes": ("docs/reference/connector-rules.md", code_table),
    "expression-functions": ("docs/reference/expressions.md", function_table),
    "handshakes": ("docs/reference/handshakes.md", handshake_table),
    "sender-answers": ("docs/reference/handshakes.md", answer_table),
    "sender-behaviour": ("docs/reference/handshakes.md", behaviour_table),
    "known-senders": ("docs/reference/classification.md", sender_table),
    "split-senders": ("docs/reference/splitting.md", split_table),
    "severities": ("docs/reference/sender-definitions.md", severity_table),
    "sender-format": ("docs/reference/sender-definitions.md", entry_table),
    "entry-codes": ("docs/reference/sender-definitions.md", entry_code_table),
    "sender-pages": ("docs/how-to/verified-senders.md", page_list),
    **{f"senders-{name}": (f"docs/how-to/senders/{name}.md", partial(sender_page, name)) for name in PAGES},
    **{f"options-{name}": ("docs/reference/stores.md", partial(store_table, name)) for name in STORES},
    **{f"relay-options-{name}": ("docs/reference/relay.md", partial(broker_table, name)) for name in BROKERS},
}
"""Name of a generated block to its page and the function that makes it."""


def pages() -> list[Path]:
    """Return all documents."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "tests").rglob("*.md"))]


def read(name: str) -> str:
    """Return the text of a document, by its path from the root."""
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a document, in order."""
    return [Block(match[1], match[2]) for match in _FENCE.finditer(text)]


def links(text: str) -> Iterator[tuple[str, str]]:
    """Return the links of a document to files: the path, which may be empty, and the anchor behind C{#}."""
    for match in _LINK.finditer(_FENCE.sub("", text)):
        if "://" not in match[1]:
            path, _, anchor = match[1].partition("#")
            yield path, anchor


def anchors(text: str) -> set[str]:
    """Return the anchors that the headings of a document make."""
    headings = _HEADING.findall(_FENCE.sub("", text))
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def with_table(text: str, name: str, table: str) -> str:
    """
    Return a document with a table put between its two marks.

    @raise ValueError: the marks are not there.
    """
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->\n"
    before, found_begin, rest = text.partition(begin)
    _, found_end, after = rest.partition(end)
    if not (found_begin and found_end):
        raise ValueError(f"there is no place for the table of {name}")
    return f"{before}{begin}{table}{end}{after}"


def main() -> None:
    """Write every table into its page, and the JSON Schema of rules files."""
    for name, (page, make) in TABLES.items():
        (ROOT / page).write_text(with_table(read(page), name, make()), encoding="utf-8")
    (ROOT / "docs/reference/connector-rules.schema.json").write_text(schema_text(), encoding="utf-8")


if __name__ == "__main__":
    main()
