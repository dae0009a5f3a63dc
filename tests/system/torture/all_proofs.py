"""
All proofs, by name.
"""

from __future__ import annotations

from tests.system.torture import (
    away,
    clock,
    faults,
    full_spool,
    giving_back,
    kill,
    overload,
    powercut,
    sick,
    signals,
    stuck,
)
from tests.system.torture.proof import Proof

PROOFS: dict[str, Proof] = {
    "kill-file": kill.kill_file,
    "kill-written": kill.kill_written,
    "kill-spool": kill.kill_spool,
    "powercut-file": powercut.powercut_file,
    "powercut-spool": powercut.powercut_spool,
    "faults-file": faults.faults_file,
    "faults-spool": faults.faults_spool,
    "full-disk": faults.full_disk,
    "full-disk-spool": full_spool.full_disk_spool,
    "away": away.away,
    "giving-back": giving_back.giving_back,
    "terminate": signals.terminate,
    "hang-up": signals.hang_up,
    "clock": clock.clock,
    "stand-still": clock.stand_still,
    "overload-disk": overload.overload_disk,
    "overload-processor": overload.overload_processor,
    "stuck-locks": stuck.stuck_locks,
    "unreadable": stuck.unreadable,
    "sick-observer": sick.sick_observer,
}
