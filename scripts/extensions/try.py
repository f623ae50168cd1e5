#!/usr/bin/env python3
"""Loads published extensions unchanged, drives what they bring, and says what failed.

    scripts/extensions/try.py --hardpan target/debug/hardpan --folder /tmp/extensions [NAME…]

Downloads the packages of packages.txt into FOLDER with npm (without running their scripts). Each extension is then
loaded by `hardpan extensions --json`, and driven by `hardpan -p` against the built-in simulator, which calls the
tools bash, read and write and every tool of the extension with arguments that fit its schema; each command is typed
once. NAME: only extensions whose name has this in it.

An extension counts as good if it loads, answers the prompt, and no handler, tool or command fails in its own code.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

HERE = pathlib.Path(__file__).parent
TIME = 60
# What Hardpan says of an extension, and what went wrong in one. Notes of extensions go there, too.
FAULT = re.compile(r"^hardpan: extension |Error|  failed: |panick|no end after")
# A command that has another name here works all the same.
RENAMED = "because Hardpan has one of this name"
INSTALL = ["--silent", "--ignore-scripts", "--omit=dev", "--omit=peer", "--omit=optional", "--legacy-peer-deps"]


def download(folder, package):
    """The folder of a package, with what it depends on beside it."""
    name = package[: package.rindex("@")]
    place = folder / re.sub(r"[^\w.-]+", "_", package)
    found = place / "node_modules" / name
    if not found.exists():
        place.mkdir(parents=True, exist_ok=True)
        (place / "package.json").write_text("{}")
        if name.endswith("/pi-coding-agent"):
            # Its examples need nothing of what it depends on.
            packed = subprocess.run(["npm", "pack", "--silent", package], cwd=place, check=True, capture_output=True)
            tarball = place / packed.stdout.decode().split()[-1]
            found.mkdir(parents=True)
            subprocess.run(["tar", "xzf", tarball, "-C", found, "--strip-components=1"], check=True)
        else:
            subprocess.run(["npm", "install", *INSTALL, package], cwd=place, check=True, capture_output=True)
    return found


def extensions(folder, inner):
    """The files and folders of a package that are extensions."""
    if inner:
        for manifest in (folder / inner).glob("*/package.json"):
            needs_packages = json.loads(manifest.read_text()).get("dependencies")
            if needs_packages and not (manifest.parent / "node_modules").exists():
                subprocess.run(["npm", "install", *INSTALL], cwd=manifest.parent, capture_output=True, check=False)
        entries = sorted((folder / inner).iterdir())
        return [entry for entry in entries if entry.suffix in (".ts", ".js") or (entry / "index.ts").exists()]
    return [folder]


# What arguments of these names hold, so that a tool has something to do.
USUAL = {
    "path": "notes.txt", "file_path": "notes.txt", "file": "notes.txt", "command": "ls", "pattern": "milk", "query": "milk",
    "oldText": "Remember", "newText": "Forget", "content": "new\n", "duration": "5 minutes", "name": "sleeper",
}


def sample(schema, depth=0, name=None):
    """A value that fits a schema."""
    if not isinstance(schema, dict) or depth > 6:
        return None
    if name in USUAL and schema.get("type") == "string" and not schema.get("enum"):
        return USUAL[name]
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf"):
        if schema.get(key):
            return sample(schema[key][0], depth + 1)
    kind = schema.get("type")
    if kind == "object":
        wanted = schema.get("required", [])
        return {name: sample(inner, depth + 1, name) for name, inner in schema.get("properties", {}).items() if name in wanted}
    if kind == "array":
        return [sample(schema.get("items", {}), depth + 1)] * max(1, schema.get("minItems", 1))
    return {"number": schema.get("minimum", 1), "integer": schema.get("minimum", 1), "boolean": True}.get(kind, "a")


def arguments(schema):
    """Arguments that fit the schema of a tool."""
    value = sample({"type": "object", **schema})
    return value if isinstance(value, dict) else {}


class Trial:
    """One extension in a workspace and with settings of its own."""

    def __init__(self, hardpan, path):
        self.hardpan, self.path = hardpan, path
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hardpan-trial-"))
        self.work = self.folder / "work"
        self.work.mkdir()
        (self.work / "notes.txt").write_text("Remember the milk.\n")
        (self.work / ".pi").mkdir()
        subprocess.run("git init -q && git add . && git -c user.name=a -c user.email=a@b commit -qm a", shell=True, cwd=self.work, check=True)
        self.environment = {
            **{name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "USER")},
            "HOME": str(self.folder),
            "HARDPAN_CONFIG_DIR": str(self.folder / "config"),
            "HARDPAN_DATA_DIR": str(self.folder / "data"),
            "HARDPAN_STATE_DIR": str(self.folder / "state"),
            "HARDPAN_CACHE_DIR": str(self.folder / "cache"),
            "ANTHROPIC_API_KEY": "none",
        }

    def run(self, *arguments, **more):
        environment = {**self.environment, **more}
        try:
            return subprocess.run(
                [self.hardpan, *arguments], cwd=self.work, env=environment, capture_output=True, text=True,
                timeout=TIME, stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired as late:
            return subprocess.CompletedProcess(late.cmd, 124, "", f"no end after {TIME} s")

    def load(self):
        listed = self.run("extensions", "--json", "--extension", str(self.path))
        try:
            return json.loads(listed.stdout), listed.stderr.strip()
        except ValueError:
            return [], listed.stderr.strip() or listed.stdout.strip()

    def drive(self, listed):
        """Runs a prompt that calls tools, then every command. Returns what was said on standard error."""
        calls = [
            {"name": "bash", "arguments": {"command": "ls"}},
            {"name": "read", "arguments": {"path": "notes.txt"}},
            {"name": "write", "arguments": {"path": "new.txt", "content": "new\n"}},
        ]
        tools = [tool for extension in listed for tool in extension["tools"]]
        schemas = self.schemas(tools)
        own = [name for name in tools if name not in ("bash", "read", "write")]
        calls += [{"name": name, "arguments": arguments(schemas.get(name, {}))} for name in own if name in schemas]
        # A tool that the request does not declare can be switched on later.
        script = self.folder / "script.yaml"
        script.write_text(json.dumps({"turns": [{"tool_calls": calls}], "default": {"text": "Fine."}}))
        said = []
        prompts = ["Hello"] + [f"/{name}" for extension in listed for name in extension["commands"]]
        for prompt in prompts:
            with Simulator(self.hardpan, script) as address:
                ended = self.run(
                    "-p", prompt, "--yes", "--extension", str(self.path), ANTHROPIC_BASE_URL=address,
                )
            lines = [line for line in ended.stderr.splitlines() if FAULT.search(line)]
            lines = [line for line in lines if RENAMED not in line]
            if ended.returncode not in (0, 1) or (prompt == "Hello" and ended.returncode != 0):
                lines.append(f"exit code {ended.returncode}: {ended.stderr.strip()[-300:]}")
            said += [f"{prompt}: {line}" for line in lines]
        return said

    def schemas(self, tools):
        """What the extension's tools take, as the model is told."""
        if not tools:
            return {}
        with Simulator(self.hardpan, None, self.folder / "requests.jsonl") as address:
            self.run("-p", "Hello", "--yes", "--extension", str(self.path), ANTHROPIC_BASE_URL=address)
        found = {}
        for line in (self.folder / "requests.jsonl").read_text().splitlines():
            for tool in json.loads(line).get("body", {}).get("tools", []):
                found[tool["name"]] = tool.get("input_schema", {})
        return found

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)


class Simulator:
    """The built-in provider, for one run."""

    def __init__(self, hardpan, script, log=None):
        more = ["--script", str(script)] if script else []
        self.command = [hardpan, "simulator", *more, *(["--log-requests", str(log)] if log else [])]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the simulator did not start: {' '.join(self.command)}")
        return line.split()[-1]

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hardpan", default="target/debug/hardpan")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "hardpan-extensions")
    parser.add_argument("--load-only", action="store_true")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    hardpan = str(pathlib.Path(args.hardpan).absolute())
    good = count = 0
    for line in (HERE / "packages.txt").read_text().splitlines():
        package, _, inner = line.partition(" ")
        if not package or package.startswith("#"):
            continue
        try:
            folder = download(args.folder.absolute(), package)
        except subprocess.CalledProcessError as error:
            print(f"| {package} | not downloaded | {(error.stderr or b'').decode()[-200:].strip()} |", flush=True)
            continue
        for path in extensions(folder, inner):
            name = f"{package}/{path.name}" if inner else package
            if args.names and not any(wanted in name for wanted in args.names):
                continue
            count += 1
            with Trial(hardpan, path) as trial:
                listed, errors = trial.load()
                brings = "; ".join(
                    f"{len(names)} {kind}"
                    for kind in ("events", "tools", "commands")
                    if (names := [name for extension in listed for name in extension[kind]])
                )
                problems = [line.replace(str(folder), "") for line in errors.splitlines() if RENAMED not in line]
                if listed and not args.load_only:
                    problems += trial.drive(listed)
            state = "not loaded" if not listed else "problems" if problems else "good"
            good += state == "good"
            print(f"| {name} | {state} | {brings} | {' · '.join(dict.fromkeys(problems))[:400]} |", flush=True)
    print(f"{good} of {count} good")


if __name__ == "__main__":
    main()
