#!/usr/bin/env python3
"""Runs other coding agents through a whole task against the simulator, and compares their requests.

See docs/clients.md. Nothing leaves the machine but the downloads of the packages: client and
simulator run in a network namespace with loopback alone, if the system allows it.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tomllib
from collections import Counter

import install
import measure
import task

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))
INSIDE = "HARDPAN_CLIENTS_INSIDE"  # set in the process that runs in the namespace
SIMULATOR_SECONDS = 20


def load_clients(names):
    """The settings of the clients with these names, or of all."""
    folder = os.path.join(HERE, "settings")
    known = sorted(name.removesuffix(".toml") for name in os.listdir(folder) if name.endswith(".toml"))
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"unknown: {', '.join(unknown)}; known are {', '.join(known)}")
    clients = []
    for name in names or known:
        own = read_settings(folder, name)
        base = own.get("base", name)  # another provider of the same client, from the same package
        clients.append({"name": name, "installed_as": base} | read_settings(folder, base) | own)
    return clients


def read_settings(folder, name):
    with open(os.path.join(folder, f"{name}.toml"), "rb") as file:
        return tomllib.load(file)


def fill_in(value, places):
    """Replaces `{url}` and the like in every text of a value."""
    if isinstance(value, dict):
        return {fill_in(key, places): fill_in(one, places) for key, one in value.items()}
    if isinstance(value, list):
        return [fill_in(one, places) for one in value]
    if isinstance(value, str):
        for name, text in places.items():
            value = value.replace("{" + name + "}", text)
    return value


def start_simulator(hardpan, script, log, environment):
    """Starts the simulator and returns it with its address."""
    command = [hardpan, "simulator", "--script", script, "--log-requests", log]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        start_new_session=True,
    )
    signal.alarm(SIMULATOR_SECONDS)
    line = process.stdout.readline()
    signal.alarm(0)
    return process, line.strip().removeprefix("listening on ")


def try_client(client, options, folder):
    """Runs a client through the task once."""
    shutil.rmtree(folder, ignore_errors=True)
    home, project = os.path.join(folder, "home"), os.path.join(folder, "tariff")
    os.makedirs(home)
    os.makedirs(project)
    paths = [install.bin_folder(options.packages, client), os.path.dirname(sys.executable)]
    if options.node:
        paths.insert(1, options.node)
    environment = {
        "HOME": home,
        "PATH": ":".join([*paths, "/usr/local/bin", "/usr/bin", "/bin"]),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org",
    }
    task.write_tree(project, environment, options.modules, options.tree)
    places = {
        "home": home, "project": project, "prompt": task.PROMPT, "hardpan": options.hardpan,
        "old": task.OLD, "new": task.NEW, "command": task.COMMAND, "answer": task.FINAL_ANSWER,
        "second_prompt": task.SECOND_PROMPT,
    }
    script, log = os.path.join(folder, "script.yaml"), os.path.join(folder, "requests.jsonl")
    with open(script, "w") as file:
        file.write(task.answers(client, lambda value: fill_in(value, places)))
    simulator, url = start_simulator(options.hardpan, script, log, environment)
    try:
        places["url"] = url
        for path, text in fill_in(client.get("files", {}), places).items():
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(text)
        def run(command, output):
            return measure.run(
                fill_in(client[command], places),
                cwd=project,
                environment=environment | fill_in(client.get("env", {}), places),
                output=os.path.join(folder, output),
                timeout=options.timeout,
                keep={simulator.pid},
            )
        measured = run("command", "output.txt")
        resumed = run("resume", "resumed.txt")["started"] if "resume" in client else None
    finally:
        simulator.terminate()
        simulator.wait(10)
    with open(log) as file:
        requests = [json.loads(line) for line in file]
    first = [one for one in requests if resumed is None or one["at_ms"] / 1000 < resumed]
    result = result_of(client, first, measured, project, folder)
    return result | {"resumed": resumption_of(requests[len(first):])}


def error_text(error):
    """The message of a refusal, whatever the protocol."""
    while isinstance(error, (list, dict)):
        error = error[0] if isinstance(error, list) else error.get("error", error.get("message"))
    return str(error)


def resumption_of(requests):
    """How much of the conversation a client finds in the cache when another process goes on with it."""
    answered = conversation([request for request in requests if "bill" in request])
    if not requests:
        return None
    refused = sum(request["status"] >= 400 for request in requests)
    if not answered:
        return {"refused": refused}
    usage = answered[0]["bill"]["usage"]
    return {"refused": refused, "prompt_tokens": prompt_tokens(usage), "cache_read_tokens": usage["cache_read"]}


def conversation(answered):
    """The requests of the conversation itself: titles and ratings of the task declare no tools."""
    return [request for request in answered if request["body"].get("tools")] or answered


def prompt_tokens(usage):
    return sum(usage.get(kind, 0) for kind in ("input", "cache_read", "cache_write_5m", "cache_write_1h"))


def result_of(client, requests, measured, project, folder):
    """What a run shows, from the simulator's log and the measurements."""
    answered = [request for request in requests if "bill" in request]
    refused = Counter(
        (request["status"], request["path"], error_text(request.get("error")))
        for request in requests if request["status"] >= 400
    )
    with open(os.path.join(folder, "output.txt"), errors="replace") as file:
        output = file.read()
    main = conversation(answered)
    add = lambda kind: sum(request["bill"]["usage"].get(kind, 0) for request in answered)
    posts = [request for request in requests if request["method"] == "POST" and "count" not in request["path"].lower()]
    return {
        "client": client["title"],
        "package": client.get("npm") or client.get("pypi") or client["title"],
        "models": sorted({request["bill"]["model"] for request in answered}),
        "accepted": len(answered),
        "turns": len(main),
        "refused": [{"status": s, "path": p, "message": m, "times": n} for (s, p, m), n in refused.items()],
        "first_prompt_tokens": prompt_tokens(main[0]["bill"]["usage"]) if main else None,
        "prompt_tokens": sum(prompt_tokens(request["bill"]["usage"]) for request in answered),
        "cache_read_tokens": add("cache_read"),
        "output_tokens": add("output"),
        "input_units": round(sum(request["bill"]["input_units"] for request in answered)),
        "dollars": round(sum(request["bill"]["dollars"] for request in answered), 5),
        "start_seconds": round(posts[0]["at_ms"] / 1000 - measured["started"], 2) if posts else None,
        "seconds": round(measured["seconds"], 1),
        "peak_megabytes": round(measured["peak_bytes"] / 1e6),
        "exit_code": measured["exit_code"],
        "file_changed": task.is_done(project),
        "tests_ran": any("Ran 3 tests" in json.dumps(request["body"]) for request in answered),
        "answer_shown": task.FINAL_ANSWER[:40] in output,
    }


def best_of(results):
    """The last run, with the least time and memory of all: other work on the machine adds to them."""
    best = dict(results[-1])
    for field in ("start_seconds", "seconds", "peak_megabytes"):
        best[field] = min((result[field] for result in results if result[field] is not None), default=None)
    return best


def resumed_text(resumed):
    if resumed is None:
        return "–"
    if "prompt_tokens" not in resumed:
        return f"{resumed['refused']} refused"
    return f"{resumed['cache_read_tokens']:,} of {resumed['prompt_tokens']:,}"


def print_table(results):
    """Prints one row per client, then the refusals."""
    def thousands(number):
        return "–" if number is None else f"{number:,}"
    columns = ["client", "model", "accepted", "refused", "task", "first prompt", "units", "dollars", "start s", "MB", "resumed: cached"]
    print("| " + " | ".join(columns) + " |\n|" + "---|" * 5 + "--:|" * 6)
    for one in results:
        done = [one["file_changed"], one["tests_ran"], one["answer_shown"], one["exit_code"] == 0]
        words = ["edit", "tests", "answer", "exit 0"]
        missing = [word for word, ok in zip(words, done) if not ok]
        row = [
            one["client"], ", ".join(one["models"]), str(one["accepted"]),
            str(sum(refusal["times"] for refusal in one["refused"])),
            "done" if not missing else "without " + ", ".join(missing),
            thousands(one["first_prompt_tokens"]), thousands(one["input_units"]), f"{one['dollars']:.4f}",
            "–" if one["start_seconds"] is None else f"{one['start_seconds']:.2f}", str(one["peak_megabytes"]), resumed_text(one["resumed"]),
        ]
        print("| " + " | ".join(row) + " |")
    for one in results:
        for refusal in one["refused"]:
            print(f"\n{one['client']}, {refusal['times']}× {refusal['status']} at {refusal['path']}: {refusal['message']}")


def enter_namespace():
    """Starts this script again where there is no network but loopback; returns if that is not possible."""
    arguments = [sys.executable, os.path.abspath(__file__), *sys.argv[1:]]
    inside = ["unshare", "--user", "--map-root-user", "--net", "--"]
    try:
        subprocess.run([*inside, "ip", "link", "set", "lo", "up"], check=True, capture_output=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        print("no network namespaces here: the clients could reach the network", file=sys.stderr)
        return
    os.environ[INSIDE] = "1"
    os.execvp("unshare", [*inside, "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *arguments])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help="names of settings/*.toml [default: all]")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--runs", type=int, default=1, help="how often each client runs; the best time and memory count")
    parser.add_argument("--modules", type=int, default=0, help="modules of some 50 lines to add to the tree")
    parser.add_argument("--tree", help="folder whose files are put around the task's own, such as a public repository")
    parser.add_argument("--timeout", type=float, default=120, help="seconds that a client gets [default: 120]")
    parser.add_argument("--folder", default=os.path.join(REPOSITORY, "target", "clients"), help="packages and logs")
    parser.add_argument("--hardpan", default=os.path.join(REPOSITORY, "target", "debug", "hardpan"), help="the binary")
    options = parser.parse_args()
    clients = load_clients(options.clients)
    options.folder, options.hardpan = os.path.abspath(options.folder), os.path.abspath(options.hardpan)
    if not os.path.exists(options.hardpan):
        sys.exit(f"{options.hardpan} is not there: run `cargo build -p hardpan-cli`, or name the binary with --hardpan")
    options.packages = os.path.join(options.folder, "packages")
    options.node = None if install.node_is_current() else install.bin_folder(options.packages, install.NODE)
    if INSIDE not in os.environ:
        if options.node:
            install.install(options.packages, install.NODE)
        for client in clients:
            install.install(options.packages, client)
        enter_namespace()
    measure.adopt_orphans()
    results = []
    for client in clients:
        runs = []
        for number in range(options.runs):
            print(f"{client['title']} …", file=sys.stderr)
            runs.append(try_client(client, options, os.path.join(options.folder, "runs", client["name"])))
        results.append(best_of(runs))
    if options.json:
        print(json.dumps(results, indent=2))
    else:
        print_table(results)


if __name__ == "__main__":
    main()
