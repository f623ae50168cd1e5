"""Runs a process with a time limit and measures the memory of everything that it starts."""

import ctypes
import os
import signal
import subprocess
import time

PR_SET_CHILD_SUBREAPER = 36
POLL_SECONDS = 0.05


def adopt_orphans():
    """Makes processes whose parent ends children of this one, so that none stays behind."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants(root):
    """The ids of a process and of everything below it."""
    children = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as file:
                    parent = int(file.read().rpartition(")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                continue
            children.setdefault(parent, []).append(int(name))
    found, waiting = [], [root]
    while waiting:
        process = waiting.pop()
        found.append(process)
        waiting.extend(children.get(process, []))
    return found


def memory_of(process):
    """The bytes of a process; what several share is divided among them."""
    try:
        with open(f"/proc/{process}/smaps_rollup") as file:
            for line in file:
                if line.startswith("Pss:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return 0


def run(command, *, cwd, environment, output, timeout, keep):
    """Runs a command. Afterwards nothing that it started is left, except for the ids in `keep`."""
    with open(output, "wb") as file:
        started = time.time()
        process = subprocess.Popen(
            command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=file,
            stderr=subprocess.STDOUT, start_new_session=True,
        )
        peak, timed_out = 0, False
        while process.poll() is None:
            peak = max(peak, sum(memory_of(one) for one in descendants(process.pid)))
            if time.time() - started > timeout:
                timed_out = True
                break
            time.sleep(POLL_SECONDS)
    seconds = time.time() - started
    for one in descendants(os.getpid())[1:]:
        if one not in keep:
            try:
                os.kill(one, signal.SIGKILL)
            except ProcessLookupError:
                pass
    process.wait(10)
    while True:  # orphans that became ours
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                break
        except ChildProcessError:
            break
    code = None if timed_out else process.returncode
    return {"started": started, "seconds": seconds, "peak_bytes": peak, "exit_code": code}
