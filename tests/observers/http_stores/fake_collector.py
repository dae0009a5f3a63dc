"""
A collector of OpenTelemetry, played from the standard; protobuf's own parsers read what comes.

Source: U{https://opentelemetry.io/docs/specs/otlp/#otlphttp}.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

JSON = "application/json"
PROTOBUF = "application/x-protobuf"


class FakeCollector:
    """
    Keeps records in memory.

    @ivar records: in the order in which they came.
    @ivar resources: of each record, its attributes.
    @ivar sizes: how many records each request had.
    @ivar rejects: which records are dropped by a partial success.
    @ivar message: what a partial success says.
    @ivar is_bad: which records make their request bad data: 400.
    """

    def __init__(self) -> None:
        self.records: list[LogRecord] = []
        self.resources: list[dict[str, str]] = []
        self.sizes: list[int] = []
        self.rejects: Callable[[LogRecord], bool] = lambda record: False
        self.message = ""
        self.is_bad: Callable[[LogRecord], bool] = lambda record: False

    def handle(self, target: str, fields: dict[str, str], content: bytes) -> tuple[int, bytes]:
        """Answer a POST: a status and a body, in the encoding of the request."""
        encoding = fields["content-type"]
        if target != "/v1/logs":
            return 404, b"404 page not found\n"
        if encoding not in (JSON, PROTOBUF):
            return 415, b""
        if fields.get("content-encoding") == "gzip":
            content = gzip.decompress(content)
        try:
            request = _read(encoding, content)
        except (DecodeError, json_format.ParseError) as error:
            return 400, str(error).encode()
        records = [
            (record, {each.key: each.value.string_value for each in logs.resource.attributes})
            for logs in request.resource_logs
            for scope in logs.scope_logs
            for record in scope.log_records
        ]
        self.sizes.append(len(records))
        if any(self.is_bad(record) for record, _ in records):
            return 400, b"bad data"
        taken = [each for each in records if not self.rejects(each[0])]
        for record, resource in taken:
            self.records.append(record)
            self.resources.append(resource)
        return 200, self._response(encoding, len(records) - len(taken))

    def _response(self, encoding: str, rejected: int) -> bytes:
        response = ExportLogsServiceResponse()
        if rejected or self.message:
            response.partial_success.rejected_log_records = rejected
            response.partial_success.error_message = self.message
        if encoding == PROTOBUF:
            return response.SerializeToString()
        return json_format.MessageToJson(response).encode()


def _read(encoding: str, content: bytes) -> Any:
    if encoding == PROTOBUF:
        return ExportLogsServiceRequest.FromString(content)
    return json_format.Parse(content, ExportLogsServiceRequest())
