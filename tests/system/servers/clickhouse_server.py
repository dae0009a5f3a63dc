"""A real ClickHouse: the one of Debian, 18.16, which is old."""

from __future__ import annotations

from tests.system.servers.process import Server, ask, free_port, program

_CONFIG = """<yandex>
<logger><level>warning</level><console>1</console></logger>
<listen_host>127.0.0.1</listen_host>
<http_port>{http}</http_port>
<tcp_port>{tcp}</tcp_port>
<interserver_http_port>{between}</interserver_http_port>
<path>{path}/data/</path>
<tmp_path>{path}/tmp/</tmp_path>
<users_config>users.xml</users_config>
<default_profile>default</default_profile>
<default_database>default</default_database>
<mark_cache_size>67108864</mark_cache_size>
</yandex>
"""
_USERS = """<yandex>
<profiles><default><max_memory_usage>2000000000</max_memory_usage></default></profiles>
<users>
<default>
<password>{password}</password>
<networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota>
</default>
</users>
<quotas><default></default></quotas>
</yandex>
"""


class ClickhouseServer(Server):
    """
    C{clickhouse-server}, by HTTP.

    @param password: of its user C{default}.
    """

    name = "clickhouse"

    def __init__(self, password: str = "") -> None:
        super().__init__()
        self.password = password
        self._other_ports: list[int] = []

    @classmethod
    def missing(cls) -> str:
        """Say that it is not installed."""
        found = program("clickhouse-server", "clickhouse")
        return "" if found else "no clickhouse-server: apt-get install clickhouse-server"

    def command(self) -> list[str]:
        """Write the configuration, and run it."""
        self._other_ports = self._other_ports or [free_port(), free_port()]
        tcp, between = self._other_ports
        self.write("users.xml", _USERS.format(password=self.password))
        config = _CONFIG.format(http=self.port, tcp=tcp, between=between, path=self.directory)
        found = program("clickhouse-server")
        start = [found] if found else [program("clickhouse"), "server"]
        return [*start, f"--config-file={self.write('config.xml', config)}"]

    def is_ready(self) -> bool:
        """Ask as a load balancer does."""
        return ask(self.port, b"GET /ping HTTP/1.0\r\n\r\n", b"Ok.").endswith(b"Ok.\n")
