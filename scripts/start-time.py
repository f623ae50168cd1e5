#!/usr/bin/env python3
"""Measures how long Hardpan takes from its start to the first byte of its first request.

    scripts/start-time.py FOLDER [--hardpan BINARY] [--runs N] [--extensions]

Copies FOLDER (a source tree, such as one that scripts/overview/trees.py fetches), makes it a git repository, and
starts `hardpan -p` there again and again against a port of this script that reads one byte and ends it. The first
start parses every file; then a whole run keeps the index, which the others find.

With --extensions it measures what extensions cost: it starts by turns with the switch that turns them off
(--no-extensions), with none to be found, and with one, and compares processor time and time.
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
import typing


def main():
    parser = argparse.ArgumentParser(description="Measures the time from start to the first byte of a request.")
    parser.add_argument("folder", help="source tree to start in")
    parser.add_argument("--hardpan", default="target/release/hardpan", help="the binary (target/release/hardpan)")
    parser.add_argument("--runs", type=int, default=20, help="warm starts to measure (20)")
    parser.add_argument("--extensions", action="store_true", help="compare starts without and with extensions")
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
        with StartServer(binary, home, work) as server:
            cold = server.start()
            server.keep_index()
            if options.extensions:
                compare_extensions(server, home, options.runs)
                return
            warm = [server.start().time for _ in range(options.runs)]
    print(f"cold {cold.time:.0f} ms")
    print(f"warm {statistics.median(warm):.0f} ms, from {min(warm):.0f} to {max(warm):.0f} in {len(warm)} starts")


def compare_extensions(server, home, runs):
    """Starts by turns, so that whatever else the machine does meets all alike."""
    extension = os.path.join(home, "one.ts")
    with open(extension, "w", encoding="utf-8") as file:
        file.write("export default function (pi: any) { pi.on('agent_end', async () => {}); }\n")
    ways = {
        "switched off": ["--no-extensions"],
        "none there": [],
        "one extension": ["--extension", extension],
    }
    starts = {name: [] for name in ways}
    for _ in range(runs):
        for name, arguments in ways.items():
            starts[name].append(server.start(*arguments))
    base = None
    for name, measured in starts.items():
        processor = statistics.median(start.processor for start in measured)
        base = base or processor
        wall = statistics.median(start.time for start in measured)
        print(f"{name}: {processor:.1f} ms of processor time ({processor / base:.2f}), {wall:.0f} ms, median of {runs} starts")


class Start(typing.NamedTuple):
    """Milliseconds from the start to the first byte of the first request."""

    time: float
    processor: float


class StartServer:
    """A port that reads one byte of each request, and the program that sends it."""

    def __init__(self, binary, home, work):
        self.binary, self.work = binary, work
        self.server = socket.create_server(("127.0.0.1", 0))
        self.server.settimeout(60)
        self.environment = {
            "HOME": home,
            "PATH": os.environ["PATH"],
            "ANTHROPIC_API_KEY": "none",
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{self.server.getsockname()[1]}",
        }

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.close()

    def keep_index(self):
        """Runs until the index is kept: a start that is measured ends too early for that."""
        offline = {name: value for name, value in self.environment.items() if not name.startswith("ANTHROPIC_")}
        for _ in range(2):
            subprocess.run([self.binary, "-p", "Hello."], cwd=self.work, env=offline, stdin=subprocess.DEVNULL, capture_output=True, check=True)

    def start(self, *arguments):
        began = time.perf_counter()
        process = subprocess.Popen(
            [self.binary, *arguments, "-p", "Hello."],
            cwd=self.work,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            connection, _ = self.server.accept()
            connection.recv(1)
            elapsed = (time.perf_counter() - began) * 1000
            connection.close()
        finally:
            process.kill()
            _, _, used = os.wait4(process.pid, 0)
            process.returncode = -9
        return Start(elapsed, (used.ru_utime + used.ru_stime) * 1000)


if __name__ == "__main__":
    main()
