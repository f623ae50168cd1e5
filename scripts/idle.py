#!/usr/bin/env python3
"""Measures what Hardpan costs while nobody does anything: a conversation in a terminal, every panel open.

    scripts/idle.py [FOLDER] [--hardpan BINARY] [--seconds N] [--screen plain|page]

Starts `hardpan` in a pseudo-terminal, in a copy of FOLDER (or in 1,000 generated files), against the simulator. The
scripted model opens a file, a console, a git result and every other panel. Then nothing happens for N seconds (10): the
processor time and the written bytes of the process and of what it started must be 0. Exits with 1 if they are not.
"""

import argparse
import os
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import time

SCRIPT = """
turns:
  - when: {contains: Open everything}
    text: I open everything.
    tool_calls:
      - {name: panel, arguments: {action: todo_add, text: first}}
      - {name: panel, arguments: {action: open, target: opened.txt}}
      - {name: panel, arguments: {action: tree_filter, text: "*.txt"}}
      - {name: panel, arguments: {action: tree_describe, target: opened.txt, text: the first}}
      - {name: panel, arguments: {action: memory_write, target: build, text: Build with make.}}
      - {name: panel, arguments: {action: timer, target: "600", text: look at the build}}
      - {name: panel, arguments: {action: log, text: planned}}
      - {name: panel, arguments: {action: scratch_write, target: facts, text: it is idle}}
      - {name: console, arguments: {action: start, text: "echo ready; exec sleep 100000"}}
      - {name: git, arguments: {command: log --oneline -5}}
  - text: I look again.
    tool_calls: [{name: read, arguments: {path: opened.txt}}]
default: {text: Everything is open now.}
"""


def main():
    parser = argparse.ArgumentParser(description="Measures what an idle conversation costs.")
    parser.add_argument("folder", nargs="?", help="source tree to start in; without it, 1,000 small files")
    parser.add_argument("--hardpan", default="target/release/hardpan", help="the binary (target/release/hardpan)")
    parser.add_argument("--seconds", type=int, default=10, help="how long nothing happens (10)")
    parser.add_argument("--screen", default="page", choices=["page", "plain"], help="the face")
    options = parser.parse_args()
    binary = os.path.abspath(options.hardpan)
    if not os.access(binary, os.X_OK):
        sys.exit(f"{binary} is no program: build it with cargo build --release, or name another with --hardpan")
    with tempfile.TemporaryDirectory() as home:
        work = prepare_folder(home, options.folder)
        script = os.path.join(home, "script.yaml")
        with open(script, "w", encoding="utf-8") as file:
            file.write(SCRIPT)
        simulator = subprocess.Popen(
            [binary, "simulator", "--script", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            address = simulator.stdout.readline().split()[-1]
            costs = measure(binary, home, work, address, options)
        finally:
            simulator.kill()
            simulator.wait()
    ticks, written = costs
    print(f"idle for {options.seconds} s: {ticks * 1000 // os.sysconf('SC_CLK_TCK')} ms of processor time, {written} bytes written")
    sys.exit(1 if ticks or written else 0)


def prepare_folder(home, folder):
    """A copy of the folder as a git repository."""
    work = os.path.join(home, "work")
    if folder:
        shutil.copytree(folder, work, symlinks=True, ignore=shutil.ignore_patterns(".git", "target"))
    else:
        for number in range(1000):
            place = os.path.join(work, f"d{number // 50:02}")
            os.makedirs(place, exist_ok=True)
            with open(os.path.join(place, f"f{number:04}.py"), "w", encoding="utf-8") as file:
                file.write(f"def f{number}(): ...\n")
    with open(os.path.join(work, "opened.txt"), "w", encoding="utf-8") as file:
        file.write("some text\n")
    git = ["git", "-c", "user.name=idle", "-c", "user.email=idle@localhost"]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "start"]):
        subprocess.run(git + arguments, cwd=work, check=True)
    return work


def measure(binary, home, work, address, options):
    """Clock ticks and written bytes of the idle time."""
    config = os.path.join(home, ".config", "hardpan")
    os.makedirs(config)
    with open(os.path.join(config, "config.toml"), "w", encoding="utf-8") as file:
        file.write(
            f'model = "claude-sonnet-5"\nlayout = "panels"\nscreen = "{options.screen}"\n'
            f'[spine]\nauto_continue = true\n[providers.anthropic]\nbase_url = "{address}"\n'
        )
    environment = {"HOME": home, "PATH": os.environ["PATH"], "TERM": "xterm-256color", "ANTHROPIC_API_KEY": "any"}
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(work)
        os.execve(binary, [binary, "--yes"], environment)
    try:
        read_until(terminal, {"page": "›".encode(), "plain": b"you: "}[options.screen], 60)
        os.write(terminal, b"Open everything\r")
        read_until(terminal, b"Everything is open now.", 120)
        # The agent sees its todo and goes on by itself until it notices that nothing comes of it.
        settle(terminal, process)
        before = costs_of(process)
        drain(terminal, options.seconds)
        after = costs_of(process)
    finally:
        os.kill(process, 9)
        os.waitpid(process, 0)
    return after[0] - before[0], after[1] - before[1]


def read_until(terminal, text, seconds):
    """Reads what is shown until a text comes."""
    seen, end = b"", time.monotonic() + seconds
    while text not in seen:
        ready, _, _ = select.select([terminal], [], [], max(0, end - time.monotonic()))
        if not ready:
            sys.exit(f"{text.decode()!r} was not shown within {seconds} s, but: {seen[-2000:].decode(errors='replace')}")
        seen += os.read(terminal, 65536)


def settle(terminal, process):
    """Waits until nothing was shown or done for five seconds: the index of a large folder takes its time."""
    for _ in range(60):
        before = costs_of(process)
        if drain(terminal, 5) == 0 and costs_of(process) == before:
            return


def drain(terminal, seconds):
    """Reads what is shown for some seconds. Returns how many bytes that was."""
    count, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        ready, _, _ = select.select([terminal], [], [], max(0, end - time.monotonic()))
        count += len(os.read(terminal, 65536)) if ready else 0
    return count


def costs_of(process):
    """Clock ticks and written bytes of a process and its descendants so far."""
    ticks = written = 0
    for one in descendants(process):
        with open(f"/proc/{one}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
        try:
            with open(f"/proc/{one}/io", encoding="utf-8") as file:
                written += sum(int(line.split()[1]) for line in file if line.startswith("wchar:"))
        except PermissionError:
            pass  # what supervises a command in the sandbox lets nobody look
    return ticks, written


def descendants(process):
    """The process and all below it."""
    found = [process]
    for one in found:
        for task in os.listdir(f"/proc/{one}/task"):
            with open(f"/proc/{one}/task/{task}/children", encoding="utf-8") as file:
                found.extend(int(child) for child in file.read().split())
    return found


if __name__ == "__main__":
    main()
