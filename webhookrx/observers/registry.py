"""
Observers by name: ours, and those that others add by C{twisted.plugin}.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from twisted.logger import ILogObserver, globalLogPublisher
from twisted.plugin import getPlugins
from zope.interface import provider
from zope.interface.exceptions import Invalid
from zope.interface.verify import verifyObject

from webhookrx.config.observers import ObserverSpec
from webhookrx.config.specs import SpecOptions
from webhookrx.diagnostics import nearest
from webhookrx.errors import ConfigError
from webhookrx.interfaces import IMessageObserver, IObserverFactory
from webhookrx.observers.packages import package_for
from webhookrx.settings import ALONE, Group

if TYPE_CHECKING:
    from twisted.logger import LogEvent

    from webhookrx.settings import Observer


class _BuiltIn(NamedTuple):
    """What an observer declares, and what makes it of spec string, arguments, options and C{--ack} level."""

    spec: ObserverSpec
    build: Callable[[str, Sequence[str], Mapping[str, str], str], IMessageObserver]


def _elasticsearch(_: Group, name: str = "elasticsearch") -> _BuiltIn:
    from webhookrx.observers.http_stores.elasticsearch import ELASTICSEARCH_SPEC, build_elasticsearch

    return _BuiltIn(ELASTICSEARCH_SPEC, partial(build_elasticsearch, name))


def _clickhouse(_: Group) -> _BuiltIn:
    from webhookrx.observers.http_stores.clickhouse_options import CLICKHOUSE_SPEC, build_clickhouse

    return _BuiltIn(CLICKHOUSE_SPEC, build_clickhouse)


def _file(group: Group) -> _BuiltIn:
    from webhookrx.observers.file import FILE_SPEC, build_file

    return _BuiltIn(FILE_SPEC, partial(build_file, group=group))


def _http(_: Group) -> _BuiltIn:
    from webhookrx.observers.http_stores.http import HTTP_SPEC, build_http

    return _BuiltIn(HTTP_SPEC, build_http)


def _kafka(_: Group) -> _BuiltIn:
    from webhookrx.observers.kafka.cluster import PACKAGE
    from webhookrx.observers.kafka.options import KAFKA_SPEC

    with package_for("kafka", PACKAGE):
        from webhookrx.observers.kafka.observer import build_kafka
    return _BuiltIn(KAFKA_SPEC, build_kafka)


def _log_observer(_: Group) -> _BuiltIn:
    from webhookrx.observers.log_observer import LOG_OBSERVER_SPEC, build_log_observer

    return _BuiltIn(LOG_OBSERVER_SPEC, build_log_observer)


def _loki(_: Group) -> _BuiltIn:
    from webhookrx.observers.http_stores.loki import LOKI_SPEC, build_loki

    return _BuiltIn(LOKI_SPEC, build_loki)


def _nats(_: Group) -> _BuiltIn:
    from webhookrx.observers.nats.options import NATS_SPEC, PACKAGE

    with package_for("nats", PACKAGE):
        from webhookrx.observers.nats.observer import build_nats
    return _BuiltIn(NATS_SPEC, build_nats)


def _otlp(_: Group) -> _BuiltIn:
    from webhookrx.observers.http_stores.otlp import OTLP_SPEC, build_otlp

    return _BuiltIn(OTLP_SPEC, build_otlp)


def _redis(_: Group) -> _BuiltIn:
    from webhookrx.observers.redis.options import PACKAGE, REDIS_SPEC

    with package_for("redis", PACKAGE):
        from webhookrx.observers.redis.observer import build_redis
    return _BuiltIn(REDIS_SPEC, build_redis)


def _splunk_hec(_: Group) -> _BuiltIn:
    from webhookrx.observers.http_stores.splunk_hec_options import SPLUNK_HEC_SPEC, build_splunk_hec

    return _BuiltIn(SPLUNK_HEC_SPEC, build_splunk_hec)


def _postgresql(_: Group) -> _BuiltIn:
    with package_for("postgresql", "psycopg[binary]>=3.3"):
        from webhookrx.observers.postgresql.observer import build_postgresql
    from webhookrx.observers.postgresql.options import POSTGRESQL_SPEC

    return _BuiltIn(POSTGRESQL_SPEC, build_postgresql)


def _s3(_: Group) -> _BuiltIn:
    with package_for("s3", "obstore>=0.12"):
        from webhookrx.observers.s3.observer import build_s3
    from webhookrx.observers.s3.options import S3_SPEC

    return _BuiltIn(S3_SPEC, build_s3)


def _stdout(group: Group) -> _BuiltIn:
    from webhookrx.observers.stdout import STDOUT_SPEC, build_stdout

    return _BuiltIn(STDOUT_SPEC, partial(build_stdout, group=group))


def _syslog(_: Group) -> _BuiltIn:
    from webhookrx.observers.syslog import build_syslog
    from webhookrx.observers.syslog_options import SYSLOG_SPEC

    return _BuiltIn(SYSLOG_SPEC, build_syslog)


#: What imports each observer, since an HTTP client takes megabytes that are needed only to send by HTTP. One that needs
#: a package of its own imports within L{webhookrx.observers.packages.package_for}.
_BUILT_IN: dict[str, Callable[[Group], _BuiltIn]] = {
    "elasticsearch": _elasticsearch,
    "clickhouse": _clickhouse,
    "file": _file,
    "http": _http,
    "kafka": _kafka,
    "loki": _loki,
    "nats": _nats,
    "observer": _log_observer,
    "opensearch": partial(_elasticsearch, name="opensearch"),
    "otlp": _otlp,
    "redis": _redis,
    "splunk-hec": _splunk_hec,
    "postgresql": _postgresql,
    "s3": _s3,
    "stdout": _stdout,
    "syslog": _syslog,
}


def known_names() -> list[str]:
    """Return every name that a spec string may begin with, sorted."""
    return sorted({*_BUILT_IN, *_find_factories().by_name})


def find_spec(name: str) -> ObserverSpec:
    """Return what an observer declares of its spec string; nothing, for an observer of others."""
    find = _BUILT_IN.get(name)
    return ObserverSpec() if find is None else find(ALONE).spec


def build(observer: Observer, ack: str, group: Group = ALONE) -> IMessageObserver:
    """
    Make an observer from its parsed spec string, without opening anything. Our own win over plugins of the same name.

    @param ack: the C{--ack} level.
    @param group: the workers that share what it writes to.
    @raise ConfigError: the name, an argument or an option is unknown or wrong, or a plugin is broken.
    """
    options = dict(observer.options)
    find = _BUILT_IN.get(observer.name)
    if find is None:
        return _build_by_plugin(observer, options, ack)
    built_in = find(group)
    SpecOptions(observer.name, options).check_known(built_in.spec.options)
    return built_in.build(observer.text, observer.args, options, ack)


def _build_by_plugin(observer: Observer, options: dict[str, str], ack: str) -> IMessageObserver:
    name = observer.name
    found = _find_factories()
    factory = found.by_name.get(name)
    if factory is None:
        names = sorted({*_BUILT_IN, *found.by_name})
        broken = f" (plugins that can't be used: {'; '.join(found.broken)})" if found.broken else ""
        text = f"unknown observer {name!r}; known are {', '.join(names)}{broken}. {nearest(name, names)}"
        raise ConfigError(text.rstrip(". "))
    try:
        built = factory.build(observer.text, observer.args, options, ack)
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(f"observer {name!r}: its plugin failed: {type(error).__name__}: {error}") from error
    try:
        verifyObject(IMessageObserver, built)
    except Invalid as error:
        raise ConfigError(
            f"observer {name!r}: its plugin made something that is no IMessageObserver: {error}"
        ) from error
    return built


class _Found(NamedTuple):
    by_name: dict[str, IObserverFactory]
    broken: list[str]


def _find_factories() -> _Found:
    """Find the plugins. C{twisted.plugin} only logs failed imports, so they are read from the log."""
    broken: list[str] = []
    by_name: dict[str, IObserverFactory] = {}

    @provider(ILogObserver)
    def note_failure(event: LogEvent) -> None:
        failure = event.get("log_failure", event.get("failure"))
        if failure is not None:
            broken.append(f"{failure.type.__name__}: {failure.getErrorMessage()}")

    globalLogPublisher.addObserver(note_failure)
    try:
        for factory in getPlugins(IObserverFactory):
            name = getattr(factory, "name", None)
            if isinstance(name, str):
                by_name.setdefault(name, factory)
            else:
                broken.append(f"{type(factory).__module__}: it has no name")
    finally:
        globalLogPublisher.removeObserver(note_failure)
    return _Found(by_name, broken)
