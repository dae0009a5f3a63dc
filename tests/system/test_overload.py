"""
More is sent than the real receiver can read, since it is hardly let run; what senders and operators see of it.
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.system.receiver import Receiver, wait_until
from tests.system.test_admin import AdminCase, get
from tests.system.torture.crowd import Crowd
from tests.system.torture.subject import Output

#: Connections, each of which has a request that waits at any time.
_SENDERS = 900

#: Seconds that the receiver is stopped, and then runs, in turns; how much longer it is stopped each time, up to what.
_STOPPED, _RUNNING = 0.06, 0.002
_LONGER, _LONGEST = 1.02, 0.4

_OVERLOADED = "503 overloaded"
_NO_ROOM = '503 {"status":"flow-controlled"}'

#: Seconds after which all must have shown.
_LONG = 120.0


@contextmanager
def hardly_running(receiver: Receiver) -> Iterator[None]:
    """Let the receiver run for a small part of the time only, and a smaller one by and by: it is to be too small."""
    over = threading.Event()

    def stop_and_go() -> None:
        stopped = _STOPPED
        while not over.is_set():
            receiver.signal(signal.SIGSTOP)
            time.sleep(stopped)
            stopped = min(stopped * _LONGER, _LONGEST)
            receiver.signal(signal.SIGCONT)
            time.sleep(_RUNNING)

    thread = threading.Thread(target=stop_and_go)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class OverloadTests(AdminCase):
    """It lasts for as long as it takes until all has been seen that is to be seen."""

    def test_overload(self) -> None:
        """
        Some are refused, with C{Retry-After}, and others are not; operators see it; and it ends when the load does.
        """
        receiver = self.start_with_admin()
        crowd = Crowd(receiver.port, _SENDERS, retry_refused=False).start()
        with hardly_running(receiver):
            wait_until(lambda: crowd.refused[_OVERLOADED] and self.status() == "degraded", "it refuses, says so", _LONG)
            before = len(crowd.acknowledged)
            wait_until(lambda: len(crowd.acknowledged) > before, "others are served", _LONG)
        crowd.stop()
        # Observers hardly run either, so the queue in front of them may stand, too.
        self.assertLessEqual(set(crowd.refused), {_OVERLOADED, _NO_ROOM})
        self.assertEqual([], [each for each in crowd.refusals if not each.is_polite])
        self.assertEqual([], crowd.unanswered)
        wait_until(lambda: self.status() == "ready", "it is ready again", _LONG)
        afterwards = Crowd(receiver.port, 4).start()
        wait_until(lambda: len(afterwards.acknowledged) > 100, "all are served as ever")
        afterwards.stop()
        self.assertEqual(({}, 0), (dict(afterwards.refused), len(afterwards.unanswered)))
        output = Output(receiver.path("messages.jsonl"))
        output.read()
        self.assertLessEqual({*crowd.acknowledged, *afterwards.acknowledged}, set(output.order))

    def status(self) -> str:
        """Ask how it is."""
        status: str = json.loads(self.ask(self.admin, get("/readyz")).body)["status"]
        return status
