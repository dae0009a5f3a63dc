"""
SIGHUP, sent to a receiver and waited for.
"""

from __future__ import annotations

import os
import signal

from tests.system.receiver import Receiver, wait_until


def hang_up(receiver: Receiver) -> str:
    """
    Send SIGHUP and wait until it has been dealt with.

    @return: what was logged meanwhile.
    """
    before = receiver.log()
    receiver.signal(signal.SIGHUP)
    wait_until(lambda: _outcomes(receiver.log()) > _outcomes(before), "SIGHUP is dealt with")
    return receiver.log()[len(before) :]


def reload(receiver: Receiver, config: str) -> str:
    """
    Put a text in the place of C{config.yaml} in one step, and hang up.

    @return: what was logged meanwhile.
    """
    with open(receiver.path("config.new"), "w") as file:
        file.write(config)
    os.rename(receiver.path("config.new"), receiver.path("config.yaml"))
    return hang_up(receiver)


def _outcomes(log: str) -> int:
    # The line of one that failed may be there several times: the first is enough.
    return log.count("Reloaded: ") + log.count("Reload failed")
