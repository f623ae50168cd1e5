#!/usr/bin/env python3
"""Measures how long Hardpan takes from its start to the first byte of its first request.

    scripts/start-time.py FOLDER [--hardpan BINARY] [--runs N]

Copies FOLDER (a source tree, such as one that scripts/overview/trees.py fetches), makes it a git repository, and
starts `hardpan -p` there again and again against a port of this script that reads one byte and ends it. The first
start parses every file; the others find the index.
"""

import argparse
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time


def main():
    parser = argparse.ArgumentParser(description="Measures the time from start to the first byte of a request.")
    parser.add_argument("folder", help="source tree to start in")
    parser.add_argument("--hardpan", default="target/release/hardpan", help="the binary (target/release/hardpan)")
    parser.add_argument("--runs", type=int, default=20, help="warm starts to measure (20)")
    options = parser.parse_args()
    binary = os.path.abspath(options.hardpan)
    if not os.access(binary, os.X_OK):
        sys.exit(f"{binary} is no program: build it with cargo build --release, or name another with --hardpan")
    with tempfile.TemporaryDirectory() as home:
        work = os.path.join(home, "work")
        shutil.copytree(options.folder, work, symlinks=True)
        git = ["git", "-c", "user.name=start", "-c", "user.email=start@localhost"]
        for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "start"]):
            subprocess.run(git + arguments, cwd=work, check=True)
        cold, *warm = measure(binary, home, work, options.runs + 1)
    print(f"cold {cold:.0f} ms")
    print(f"warm {statistics.median(warm):.0f} ms, from {min(warm):.0f} to {max(warm):.0f} in {len(warm)} starts")


def measure(binary, home, work, runs):
    """The milliseconds of each start."""
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(60)
    environment = {
        "HOME": home,
        "PATH": os.environ["PATH"],
        "ANTHROPIC_API_KEY": "none",
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{server.getsockname()[1]}",
    }
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        process = subprocess.Popen(
            [binary, "-p", "Hello."],
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            connection, _ = server.accept()
            connection.recv(1)
            times.append((time.perf_counter() - began) * 1000)
            connection.close()
        finally:
            process.kill()
            process.wait()
    return times


if __name__ == "__main__":
    main()
