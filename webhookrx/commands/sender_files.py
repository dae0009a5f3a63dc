"""
An operator's own data files of senders: read from a directory, and held against their samples.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from importlib.resources import files
from typing import Final, NamedTuple

from webhookrx.commands.sample_signatures import check_signatures
from webhookrx.commands.terminal import encodable
from webhookrx.config.files import DATA_FILES, list_directory, read_file
from webhookrx.diagnostics import Diagnostic, diagnose, quoted
from webhookrx.errors import ConfigError, WebhookrxError
from webhookrx.intake.json_body import body_text, json_or_missing
from webhookrx.senders.classifier import Classifier
from webhookrx.senders.definition import SenderDefinition
from webhookrx.senders.definitions import all_definitions, builtin_definitions, read_definition
from webhookrx.senders.evidence import Evidence
from webhookrx.senders.http_file import read_http_file
from webhookrx.typed_yaml import read_typed

SAMPLE_UNREADABLE: Final = "sample-unreadable"
SAMPLE_MISSED: Final = "sample-missed"
NO_SAMPLES: Final = "no-samples"
TAKES_OTHERS: Final = "takes-others"


class Senders(NamedTuple):
    """
    The senders that are known.

    @ivar definitions: those of the package and those of the operator.
    @ivar own: name and bytes of each data file of the operator.
    @ivar diagnostics: what is wrong with these.
    """

    definitions: list[SenderDefinition]
    own: list[tuple[str, bytes]]
    diagnostics: list[Diagnostic]


def known_senders(directory: str | None) -> Senders:
    """
    Return the senders of the package, and those of a directory of the operator's.

    @raise ConfigError: the directory, or a data file in it, can't be read, or it has none.
    """
    own = [] if directory is None else [(encodable(path), read_file(path)[0]) for path in _data_files(directory)]
    definitions, diagnostics = all_definitions(builtin_definitions(), own)
    return Senders(definitions, own, diagnostics)


def evidence_of(recorded: bytes) -> Evidence:
    """
    Return what is known of a recorded request.

    @raise webhookrx.senders.http_file.HttpFileError: it holds no request.
    """
    head, query, body = read_http_file(recorded)
    return Evidence(head, query, body, body_text(body)[0], json_or_missing(body))


def check_samples(senders: Senders) -> Iterator[Diagnostic]:
    """Yield what is wrong with the samples of the operator's data files: each must hit its own definition."""
    classifier = Classifier(senders.definitions)
    for file, data in senders.own:
        reading = read_typed(data, file, SenderDefinition)
        definition, _ = read_definition(data, file)
        if definition is None:
            continue
        found: list[Diagnostic] = []
        if not definition.samples:
            sentence = "It has no samples, so nothing shows that its requests are recognised."
            found.append(diagnose(NO_SAMPLES, ("samples",), sentence))
        home = os.path.dirname(file)
        usable = {}
        for number, sample in enumerate(definition.samples):
            path = os.path.join(home, sample)
            problem = _problem(classifier, definition, path)
            if problem is None:
                usable[number] = read_file(path)[0]
            else:
                found.append(diagnose(problem[0], ("samples", number), problem[1]))
        found += check_signatures(definition, usable, partial(_read_beside, home))
        taken = _taken(classifier, definition)
        if taken:
            sentence = f"It also takes requests of {', '.join(taken)}, which would hit those definitions without it."
            found.append(diagnose(TAKES_OTHERS, ("when",), sentence))
        yield from reading.located(found)


def _data_files(directory: str) -> list[str]:
    names = [name for name in list_directory(directory) if name.endswith(DATA_FILES)]
    if not names:
        raise ConfigError(f"{quoted(directory)} holds no data files (*.yaml, *.yml).")
    return [os.path.join(directory, name) for name in names]


def _problem(classifier: Classifier, definition: SenderDefinition, path: str) -> tuple[str, str] | None:
    """Return code and sentence for what is wrong with a sample."""
    try:
        evidence = evidence_of(read_file(path)[0])
    except ConfigError as error:
        return SAMPLE_UNREADABLE, error.problem
    except WebhookrxError as error:
        return SAMPLE_UNREADABLE, f"{quoted(path)}: {error}"
    match = classifier.classify(evidence, definition.last_resort)
    if match is None:
        return SAMPLE_MISSED, f"The request in {quoted(path)} hits no definition."
    if match.sender.id != definition.id:
        return (
            SAMPLE_MISSED,
            f"The request in {quoted(path)} hits the definition {quoted(match.sender.id)}: {match.why}.",
        )
    return None


def _taken(classifier: Classifier, own: SenderDefinition) -> Sequence[str]:
    """Return the ids of definitions of the package with a sample that now hits an operator's definition."""
    ids = []
    for definition in builtin_definitions():
        if definition.id != own.id and any(_hits(classifier, own, sample) for sample in _builtin_samples(definition)):
            ids.append(definition.id)
    return ids


def _read_beside(directory: str, name: str) -> bytes:
    """@raise ConfigError: it can't be read."""
    return read_file(os.path.join(directory, name))[0]


def _builtin_samples(definition: SenderDefinition) -> Iterable[bytes]:
    directory = files("webhookrx.senders").joinpath("data")
    return (directory.joinpath(sample).read_bytes() for sample in definition.samples)


def _hits(classifier: Classifier, definition: SenderDefinition, recorded: bytes) -> bool:
    match = classifier.classify(evidence_of(recorded))
    return match is not None and match.sender.id == definition.id
