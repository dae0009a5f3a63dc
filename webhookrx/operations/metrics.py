"""
The one table of metrics: names, kinds, labels, meanings, and where each value is read.

Labels come from the settings alone, never from a sender, so there are as many series at the end as at the start. All
that can ever count something are there from the start, with 0, so that the first of anything counts as a rise.
"""

from __future__ import annotations

from webhookrx.operations.health import health_of
from webhookrx.operations.metric import (
    RELOAD_RESULTS,
    Build,
    Metric,
    View,
    by_lane,
    by_observer,
    by_secret,
    by_source,
    by_spool,
    count_by_source,
    counter,
    counts_of_steps,
    gauge,
    last_by_sender,
    not_stored,
    oldest_age,
    refusals,
    requests,
    skews,
)

METRICS: tuple[Metric[View], ...] = (
    Metric(
        "webhookrx_requests_total",
        "counter",
        ("source", "status"),
        "Answered requests; 200 stands for all that were not refused, stored or not. The source is empty if none was "
        "found for the request.",
        requests,
    ),
    Metric(
        "webhookrx_refusals_total",
        "counter",
        ("source", "reason"),
        "Refused requests, by the reason in the answer.",
        refusals,
    ),
    by_source(
        "webhookrx_messages_total",
        "counter",
        "Messages accepted into the queue. Some may still fail to be stored.",
        lambda counts: counts.messages,
    ),
    by_source(
        "webhookrx_message_bytes_total",
        "counter",
        "Bytes of the bodies of accepted messages, as sent.",
        lambda counts: counts.bytes,
    ),
    by_source(
        "webhookrx_last_message_timestamp_seconds",
        "gauge",
        "Time of the last accepted message, since the epoch; 0 if none since the start.",
        lambda counts: counts.last,
    ),
    Metric(
        "webhookrx_sender_last_message_timestamp_seconds",
        "gauge",
        ("source", "sender"),
        "Time of the last message of each sender, since the epoch; 0 if none since the start. Senders are known where "
        "Classify finds them, or a source hears only one; empty if none matched.",
        last_by_sender,
    ),
    by_source(
        "webhookrx_answer_seconds",
        "histogram",
        "Time from a complete request to its 200.",
        lambda counts: counts.answers,
    ),
    count_by_source(
        "webhookrx_unparsed_payloads_total",
        "Messages of a source that expects JSON whose body was not JSON.",
        "unparsed_payload",
    ),
    count_by_source(
        "webhookrx_bad_proxy_headers_total",
        "Messages whose proxy header had no address.",
        "bad_proxy_header",
    ),
    count_by_source(
        "webhookrx_left_out_names_total",
        "Names in payloads that were left out because they belong to the receiver.",
        "names_left_out",
    ),
    # of guarded sources
    Metric(
        "webhookrx_verified_total",
        "counter",
        ("source", "kind", "secret"),
        "Requests that a secret or token has proved, by its name; `kind` is `secret` or `token`.",
        by_secret(lambda use: use.requests),
    ),
    Metric(
        "webhookrx_secret_last_used_timestamp_seconds",
        "gauge",
        ("source", "kind", "secret"),
        "Time of the last of these requests, since the epoch; 0 if none since the start.",
        by_secret(lambda use: use.last),
    ),
    Metric(
        "webhookrx_signature_skew_seconds",
        "histogram",
        ("source",),
        "How far the signed moment of a genuine request was away, in the past or the future.",
        skews,
    ),
    Metric(
        "webhookrx_handshakes_total",
        "counter",
        ("source", "kind"),
        "Questions of senders that were answered.",
        counts_of_steps("handshake"),
    ),
    count_by_source(
        "webhookrx_duplicates_total",
        "Deliveries that came again and were answered as stored.",
        "duplicate",
    ),
    # of bodies with several events
    count_by_source(
        "webhookrx_bundles_total",
        "Bodies that were taken apart into their events, those with none included.",
        "bundle",
    ),
    count_by_source(
        "webhookrx_empty_bundles_total",
        "Bodies that say that they have no events. Their senders got 200.",
        "empty_bundle",
    ),
    count_by_source(
        "webhookrx_unsplit_bodies_total",
        "Messages of a source with `split` whose body had no events where they should be.",
        "unsplit_body",
    ),
    count_by_source(
        "webhookrx_left_out_envelopes_total",
        "Messages without their envelope, because it is too long.",
        "bare_event",
    ),
    # of the router form
    count_by_source(
        "webhookrx_text_bodies_total",
        "Messages of connectors whose body was not a JSON object and became text.",
        "text_body",
    ),
    Metric(
        "webhookrx_classified_messages_total",
        "counter",
        ("source", "sender"),
        "Messages by the id of the sender definition that Classify found; empty if none matched.",
        counts_of_steps("classified"),
    ),
    Metric(
        "webhookrx_probe_messages_total",
        "counter",
        ("source", "probe"),
        "Messages that reached a Probe step.",
        counts_of_steps("probe"),
    ),
    Metric(
        "webhookrx_dropped_messages_total",
        "counter",
        ("source", "step"),
        "Messages dropped by a step. Their senders got 200.",
        counts_of_steps("dropped"),
    ),
    Metric(
        "webhookrx_step_errors_total",
        "counter",
        ("source", "step"),
        "Messages on which a step failed or could not begin. Its `on_error` decides about the message.",
        counts_of_steps("step_error"),
    ),
    Metric(
        "webhookrx_connector",
        "gauge",
        ("source", "rule", "type", "port", "product", "vendor", "labels"),
        "1 for each connector of this router, with the facts of its rule.",
        lambda view: [(labels, 1) for labels in view.snapshot.connectors],
    ),
    gauge(
        "webhookrx_closed_connectors",
        "Connectors that could not begin because their keys or certificates are unusable.",
        lambda view: len(view.snapshot.closed),
    ),
    gauge(
        "webhookrx_rules_not_taken",
        "1 while the current rules file is not in use because it, or a reload, has an error.",
        lambda view: bool(view.snapshot.not_taken),
    ),
    counter(
        "webhookrx_state_writes_failed_total",
        "Failed attempts to store the state for the next start in the directory of `--state-dir`.",
        "state_writes_failed",
    ),
    gauge(
        "webhookrx_idempotency_keys",
        "Deliveries in the idempotency window: one of these that comes again is not stored again.",
        lambda view: view.snapshot.deliveries,
    ),
    counter(
        "webhookrx_idempotency_file_errors_total",
        "Failed attempts to use the file of the idempotency window, and damaged ones that were put aside.",
        "delivery_file_errors",
    ),
    counter(
        "webhookrx_idempotency_keys_forgotten_total",
        "Stored deliveries that the idempotency window does not know, because a worker hung at its memory.",
        "deliveries_forgotten",
    ),
    gauge(
        "webhookrx_router_blocked",
        "1 while keys or certificates of connector rules are unusable, so that connectors do not change.",
        lambda view: bool(view.snapshot.blocked),
    ),
    # of the console
    Metric(
        "webhookrx_console_away_seconds",
        "gauge",
        (),
        "Seconds for which the console has not answered, 0 while it does; only with a console.",
        lambda view: [] if view.snapshot.console is None else [((), view.snapshot.console.away)],
    ),
    Metric(
        "webhookrx_bundle_revision",
        "gauge",
        (),
        "Revision of the console's rules that are in use, 0 without any; only with a console.",
        lambda view: [] if view.snapshot.console is None else [((), view.snapshot.console.revision)],
    ),
    # of the queue and the connections
    gauge(
        "webhookrx_requests_in_flight",
        "Requests that have begun and are not completely answered.",
        lambda view: view.snapshot.requests,
    ),
    gauge(
        "webhookrx_connections",
        "Open connections from senders.",
        lambda view: view.snapshot.connections.now,
    ),
    gauge(
        "webhookrx_max_connections",
        "Limit of open connections.",
        lambda view: view.snapshot.connections.most,
    ),
    gauge(
        "webhookrx_reading_paused",
        "1 while the receiver reads nothing from senders because the queue is almost full.",
        lambda view: view.snapshot.paused,
    ),
    gauge(
        "webhookrx_unread_age_seconds",
        "Age of the oldest unread request, the highest of all workers; 0 while everything that arrives "
        "is read at once.",
        lambda view: view.snapshot.unread_age,
    ),
    gauge(
        "webhookrx_overloaded",
        "1 while more is sent than can be read: the youngest requests are served first, some of the oldest refused.",
        lambda view: view.snapshot.overloaded,
    ),
    counter(
        "webhookrx_dropped_unread_connections_total",
        "Connections closed unread under overload, because their sender had left, or sent no more and "
        "had waited for 1 s; and large bodies whose sender had left before their turn.",
        "dropped_unread",
    ),
    gauge(
        "webhookrx_queue_bytes",
        "Bytes of arriving bodies and of messages that wait for an observer.",
        lambda view: view.snapshot.queue_bytes.now,
    ),
    gauge(
        "webhookrx_queue_max_bytes",
        "Limit of these bytes.",
        lambda view: view.snapshot.queue_bytes.most,
    ),
    gauge(
        "webhookrx_queue_messages",
        "Messages that wait for an observer.",
        lambda view: view.snapshot.queue_messages.now,
    ),
    gauge(
        "webhookrx_queue_max_messages",
        "Limit of these messages.",
        lambda view: view.snapshot.queue_messages.most,
    ),
    by_observer(
        "webhookrx_observer_messages_total",
        "counter",
        "Messages given to an observer, failed ones included.",
        lambda counts: counts.messages,
    ),
    by_observer(
        "webhookrx_observer_bytes_total",
        "counter",
        "Bytes of these messages, as the observer writes them.",
        lambda counts: counts.bytes,
    ),
    by_observer(
        "webhookrx_observer_store_seconds",
        "histogram",
        "Time for an observer to make a batch safe, including the sync, or to fail.",
        lambda counts: counts.stores,
    ),
    Metric(
        "webhookrx_observer_failed_messages_total",
        "counter",
        ("observer",),
        "Messages that an observer could not make safe. Their senders got 503.",
        not_stored,
    ),
    by_observer(
        "webhookrx_observer_refused_messages_total",
        "counter",
        "Messages that an observer, or the one behind a spool, refused for good.",
        lambda counts: counts.refused,
    ),
    by_observer(
        "webhookrx_observer_known_messages_total",
        "counter",
        "Messages that the store had already, so that it keeps them once.",
        lambda counts: counts.known,
    ),
    by_observer(
        "webhookrx_observer_confirm_seconds",
        "histogram",
        "Time from an answer of the store to its word that the messages are safe, where that is asked for.",
        lambda counts: counts.confirms,
    ),
    by_lane(
        "webhookrx_observer_waiting_messages",
        "gauge",
        "Messages of the queue that wait for this observer.",
        lambda lane: lane.messages,
    ),
    by_lane(
        "webhookrx_observer_waiting_bytes",
        "gauge",
        "Bytes of these messages.",
        lambda lane: lane.bytes,
    ),
    by_lane(
        "webhookrx_observer_failing",
        "gauge",
        "1 if the observer could not make its last batch safe.",
        lambda lane: lane.failed_ago is not None,
    ),
    by_lane(
        "webhookrx_observer_stalled",
        "gauge",
        "1 while the observer hangs: it has worked on one batch for longer than an answer may take.",
        lambda lane: lane.stalled,
    ),
    by_spool(
        "webhookrx_spool_messages",
        "gauge",
        "Messages in a spool that wait for the observer behind it.",
        lambda backlog, view: backlog.messages,
    ),
    by_spool(
        "webhookrx_spool_bytes",
        "gauge",
        "Bytes of these messages.",
        lambda backlog, view: backlog.bytes,
    ),
    by_spool(
        "webhookrx_spool_oldest_age_seconds",
        "gauge",
        "Age of the oldest of these messages; 0 if there are none.",
        oldest_age,
    ),
    by_spool(
        "webhookrx_spool_dead_messages",
        "gauge",
        "Dead letters: messages that the observer rejected permanently.",
        lambda backlog, view: backlog.dead,
    ),
    by_spool(
        "webhookrx_spool_dropped_messages_total",
        "counter",
        "Messages dropped from a spool for lack of room or for their age.",
        lambda backlog, view: backlog.dropped,
    ),
    by_spool(
        "webhookrx_spool_damaged_files_total",
        "counter",
        "Damaged files of a spool that were put aside.",
        lambda backlog, view: backlog.damaged,
    ),
    by_spool(
        "webhookrx_spool_away",
        "gauge",
        "1 while the observer behind the spool takes no messages.",
        lambda backlog, view: backlog.away is not None,
    ),
    by_spool(
        "webhookrx_spool_full",
        "gauge",
        "1 while the spool accepts no messages.",
        lambda backlog, view: backlog.full,
    ),
    Metric(
        "webhookrx_endpoint_listening",
        "gauge",
        ("endpoint",),
        "1 while the endpoint is bound.",
        lambda view: [((text,), is_bound) for text, is_bound in view.snapshot.endpoints.items()],
    ),
    gauge(
        "webhookrx_workers",
        "Configured number of workers.",
        lambda view: len(view.workers),
    ),
    Metric(
        "webhookrx_worker_up",
        "gauge",
        ("worker",),
        "1 while this worker receives.",
        lambda view: [((str(worker.number),), worker.up and not worker.stuck) for worker in view.workers],
    ),
    Metric(
        "webhookrx_worker_connections",
        "gauge",
        ("worker",),
        "Open connections of this worker.",
        lambda view: [((str(worker.number),), worker.connections) for worker in view.workers],
    ),
    counter(
        "webhookrx_worker_restarts_total",
        "Workers that exited without being asked to and were restarted.",
        "worker_restarts",
    ),
    gauge(
        "webhookrx_ready",
        "1 while the receiver is ready for messages, as in `/readyz`.",
        lambda view: health_of(view.snapshot, view.workers).is_ready,
    ),
    gauge(
        "webhookrx_degraded",
        "1 while the receiver is ready but needs attention.",
        lambda view: health_of(view.snapshot, view.workers).state == "degraded",
    ),
    counter(
        "webhookrx_tls_handshake_failures_total",
        "Failed TLS handshakes, without connections that merely went away.",
        "tls_handshakes_failed",
    ),
    counter(
        "webhookrx_recorded_requests_total",
        "Requests written into the directory of `--record`.",
        "recorded",
    ),
    counter(
        "webhookrx_requests_not_recorded_total",
        "Requests that were not recorded for lack of room, or because the file could not be written.",
        "not_recorded",
    ),
    counter(
        "webhookrx_accepts_failed_total",
        "Failed attempts to accept a connection, for lack of descriptors or memory.",
        "accepts_failed",
    ),
    Metric(
        "webhookrx_certificate_expiry_timestamp_seconds",
        "gauge",
        ("file",),
        "Expiry of the certificate in use, since the epoch.",
        lambda view: [((file,), ends) for file, ends in view.snapshot.certificates.items()],
    ),
    Metric(
        "webhookrx_reloads_total",
        "counter",
        ("result",),
        "Reloads, by result: `ok` or `failed`.",
        lambda view: [((result,), view.counters.get("reloads", result)) for result in RELOAD_RESULTS],
    ),
    gauge(
        "webhookrx_last_reload_successful",
        "1 if the last reload succeeded, or there was none.",
        lambda view: view.snapshot.reload_succeeded,
    ),
    gauge(
        "webhookrx_settings_loaded_timestamp_seconds",
        "Time at which the current settings were loaded, since the epoch.",
        lambda view: view.snapshot.loaded,
    ),
    counter(
        "webhookrx_internal_failures_total",
        "Internal faults of the receiver. Its log has the details.",
        "failures",
    ),
    counter(
        "webhookrx_log_lines_held_back_total",
        "Log lines that were suppressed because there were too many similar ones.",
        "log_lines_held_back",
    ),
    gauge(
        "webhookrx_start_timestamp_seconds",
        "Start of the process, since the epoch.",
        lambda view: view.started,
    ),
    Metric(
        "webhookrx_alarms",
        "gauge",
        ("alarm", "kind", "state"),
        "Subjects of an alarm that are `pending`, `firing` or `unknown`; those beyond 1,000 are `left_out`.",
        lambda view: [((each.alarm, each.kind, each.state), each.subjects) for each in view.snapshot.alarms],
    ),
    Metric(
        "webhookrx_alarm_posts_total",
        "counter",
        ("result",),
        "Changes of alarms that targets were told of, by result: `told` or `given_up`.",
        lambda view: [((result,), view.counters.get("alarm_posts", result)) for result in ("told", "given_up")],
    ),
    Metric(
        "webhookrx_build_info",
        "info",
        Build._fields,
        "Versions of webhookrx, Twisted and Python; and the path that requests take: `compiled` or `pure` Python.",
        lambda view: [(view.build, 1)],
    ),
)
