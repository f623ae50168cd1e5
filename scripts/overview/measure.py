#!/usr/bin/env python3
"""Measures what an overview costs and what it names: measure.py TREES SESSIONS [--hardpan BINARY]

TREES is the folder that trees.py filled, SESSIONS a folder of recorded sessions of coding agents
(JSON lines). docs/map.md explains the tables.
"""

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import tempfile

SIZES = [500, 1000, 2000, 4000, 8000, 20000]
REQUESTS = [10, 50, 150]
WRITE, OUTPUT = 1.25, 5  # in units of one token of plain input
READS = [0.1, 0.05, 0.025]
SAMPLES = 300  # invented tasks per tree
# The tree that each recording was made in.
RECORDED_IN = {"pi-large.jsonl": "pi-2025"}
DEFAULT_TREE = "pi"
SEARCH = re.compile(r"^(cd \S+ && )?(grep|rg|find|ls|fd)\b")


def run(hardpan, tree, *arguments):
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {"HARDPAN_CACHE_DIR": home, "HARDPAN_CONFIG_DIR": home}
        done = subprocess.run([hardpan, "map", *arguments], cwd=tree, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
        return done.stdout


def named_files(overview):
    """The paths that an overview names."""
    folder, named = "", set()
    for line in overview.splitlines():
        if line.startswith(" "):
            named.add(folder + re.split(r": | \+", line[1:])[0].removesuffix(":"))
        else:
            folder = line.split(" ")[0].removeprefix("./")
    return named


def strings(value):
    if isinstance(value, dict):
        for one in value.values():
            yield from strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from strings(one)
    elif isinstance(value, str):
        yield value
        if value.startswith("{"):
            try:
                yield from strings(json.loads(value))
            except ValueError:
                pass


def calls(rows):
    """The arguments of every tool call of a recording, whatever the agent's format."""
    for row in rows:
        for key in ("message", "payload"):
            body = row.get(key) or {}
            parts = body.get("content") if isinstance(body.get("content"), list) else []
            for part in [body, *parts]:
                if isinstance(part, dict) and part.get("type") in ("toolCall", "tool_use", "function_call", "custom_tool_call"):
                    yield part.get("arguments") or part.get("input") or {}


def touched_files(rows, known):
    """The files of the tree that the calls of a recording name, in any argument."""
    touched = set()
    for arguments in calls(rows):
        for text in strings(arguments):
            for word in re.findall(r"[\w@./-]+\.\w+", text[:2000]):
                word = word.split("/project/")[-1].removeprefix("./")
                if word in known:
                    touched.add(word)
    return touched


def searches(rows):
    """For each search of a recording by bash: the tokens of the request after it, and of its result."""
    prompts, results, commands = [], {}, {}
    found = []
    for row in rows:
        message = row.get("message") or {}
        usage = message.get("usage") or {}
        if message.get("role") == "assistant" and usage.get("cacheRead") is not None:
            prompt = usage["input"] + usage["cacheRead"] + usage["cacheWrite"]
            for result in results.values():
                found.append((prompt, result))
            results = {}
            for part in message.get("content") or []:
                command = (part.get("arguments") or {}).get("command", "") if part.get("type") == "toolCall" else ""
                if SEARCH.match(command):
                    commands[part["id"]] = command
        elif message.get("role") == "toolResult" and message.get("toolCallId") in commands:
            text = "".join(part.get("text", "") for part in message["content"])
            results[message["toolCallId"]] = len(text) / 4
    return [(prompt, result) for prompt, result in found if prompt]


def invented_tasks(report):
    """Tasks on a tree without recordings: a random file of code and up to three that it imports."""
    files = {file["path"]: file for file in report["files"]}
    code = [path for path, file in files.items() if file["symbols"] and file["local_imports"]]
    chance = random.Random(7)
    for _ in range(SAMPLES):
        path = chance.choice(code)
        imports = files[path]["local_imports"]
        yield {path, *chance.sample(imports, min(3, len(imports)))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trees")
    parser.add_argument("sessions")
    parser.add_argument("--hardpan", default="hardpan")
    options = parser.parse_args()
    recordings = {}
    for name in sorted(os.listdir(options.sessions)):
        if name.endswith(".jsonl"):
            with open(os.path.join(options.sessions, name)) as file:
                recordings[name] = [json.loads(line) for line in file]
    print("| tree | files | overview | names | of touched files | of invented tasks |")
    print("|---|--:|--:|--:|--:|--:|")
    for name in sorted(os.listdir(options.trees)):
        tree = os.path.join(options.trees, name)
        report = json.loads(run(options.hardpan, tree, "--json"))
        tasks = list(invented_tasks(report))
        overviews = {size: run(options.hardpan, tree, "--overview", "--tokens", str(size)) for size in SIZES}
        known = {os.path.relpath(os.path.join(top, file), tree) for top, _, files in os.walk(tree) for file in files if "/.git/" not in top + "/"}
        touched = [
            touched_files(rows, known)
            for recording, rows in recordings.items()
            if RECORDED_IN.get(recording, DEFAULT_TREE) == name
        ]
        for size, overview in overviews.items():
            named = named_files(overview)
            share = lambda sets: sum(len(one & named) for one in sets) / max(1, sum(len(one) for one in sets))
            recorded = f"{share(touched):.0%} of {sum(map(len, touched))}" if any(touched) else "–"
            print(f"| {name} | {len(known):,} | {size:,} | {len(named):,} | {recorded} | {share(tasks):.0%} |")
    print("\n| overview | read at | " + " | ".join(f"{count} requests" for count in REQUESTS) + " |")
    print("|--:|--:|" + "--:|" * len(REQUESTS))
    for size in SIZES:
        for read in READS:
            costs = [size * (WRITE + read * (count - 1)) for count in REQUESTS]
            print(f"| {size:,} | {read} | " + " | ".join(f"{cost:,.0f}" for cost in costs) + " |")
    for recording, rows in recordings.items():
        made = searches(rows)
        if len(made) < 5:
            continue
        prompt = statistics.median(prompt for prompt, _ in made)
        result = statistics.median(result for _, result in made)
        print(f"\n{recording}: {len(made)} searches, in requests of {prompt:,.0f} tokens (median), with answers of {result:,.0f}")
        for count in REQUESTS:
            prices = [prompt * read + 60 * OUTPUT + result * (WRITE + read * count / 2) for read in READS]
            print(f"  one costs, with {count} requests in all: " + ", ".join(f"{price:,.0f} (read at {read})" for price, read in zip(prices, READS)))


if __name__ == "__main__":
    main()
