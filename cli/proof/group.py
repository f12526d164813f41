"""Ending a child together with everything that it has started."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress


def end_group(child: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    """Kill a child that was started in a session of its own, and its children."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
