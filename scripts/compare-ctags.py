"""The comparison of compare-ctags.sh: reads `LANGUAGE PACKAGE…` lines, prints and writes the table of recall."""

import collections
import json
import os
import re
import subprocess
import sys

# Per language of ours: the name ctags has for it, and its kinds that are functions, methods, types and interfaces.
KINDS = {
    "rust": ("Rust", "function method struct enum interface typedef"),
    "python": ("Python", "function member class"),
    "javascript": ("JavaScript", "function method class generator"),
    "typescript": ("TypeScript", "function method class interface enum alias generator"),
    "go": ("Go", "func struct interface type methodSpec talias"),
    "java": ("Java", "method class interface enum annotation"),
    "c": ("C", "function struct union enum typedef"),
    "cpp": ("C++", "function struct union enum typedef class"),
    "c-sharp": ("C#", "method class interface enum struct typedef"),
    "ruby": ("Ruby", "method singletonMethod class module"),
    "php": ("PHP", "function class interface trait"),
    "bash": ("Sh", "function"),
    "kotlin": ("Kotlin", "method class interface object typealias"),
    "lua": ("Lua", "function"),
    "elixir": ("Elixir", "function macro module protocol guard delegate type callback operator"),
    "haskell": ("Haskell", "function type"),
    "ocaml": ("OCaml", "function method class type module"),
}
# Headers are C++ to ctags, and of both to us.
FILES = {"c": {"c", "c-header"}, "cpp": {"cpp", "c-header"}, "ocaml": {"ocaml", "ocaml-interface"}, "typescript": {"typescript", "tsx"}}
TYPES = {"class", "struct", "union", "enum", "interface", "trait", "type"}
# Lines between the two tools' idea of where a definition stands.
NEAR = 2


def plain(name):
    """A name without what the two tools write differently: blanks, qualifiers, a destructor's tilde."""
    name = re.sub(r"\s+", "", name)
    if name.startswith("operator"):
        return name if name.startswith("operator()") else name.split("(")[0]
    if re.fullmatch(r"\(.*\)", name):
        return name[1:-1]
    name = name.lstrip("~@")
    return re.split(r"::|[.:]", name)[-1] or name


def ours(folder):
    dump = subprocess.run(["target/release/examples/dump", folder], capture_output=True, check=True).stdout
    return {file["path"]: file for file in map(json.loads, dump.decode().splitlines())}


def theirs(folder, language, kinds):
    command = ["ctags", "--recurse", "--links=no", "--output-format=json", "--fields=+nK", "--pseudo-tags=",
               f"--languages={language}", f"--kinds-{language}=*", "-f", "-", folder]
    for line in subprocess.run(command, capture_output=True, check=True).stdout.decode(errors="replace").splitlines():
        tag = json.loads(line)
        # Names that ctags made up for what has none.
        made_up = re.match(r"(__anon|anonymous|AnonymousFunction)", tag.get("name", ""))
        if tag.get("_type") == "tag" and tag["kind"] in kinds and not made_up:
            yield tag


def compare(language, packages, work, missed):
    name, kinds = KINDS[language]
    count = collections.Counter()
    for package in packages:
        folder = os.path.join(work, "trees", package)
        files = ours(folder)
        wanted = FILES.get(language, {language})
        for file in files.values():
            if file["language"] in wanted:
                count["files"] += 1
                count["bytes"] += os.path.getsize(file["path"])
        seen = set()
        found = {}
        for tag in theirs(folder, name, set(kinds.split())):
            file = files.get(tag["path"])
            key = (tag["path"], tag["name"], tag["line"])
            if key in seen:
                continue
            seen.add(key)
            if file and file["skipped"]:
                count["skipped"] += 1
                continue
            count["theirs"] += 1
            if file and tag["path"] not in found:
                lines = collections.defaultdict(list)
                for symbol in file["symbols"]:
                    lines[plain(symbol["name"])].append((symbol["line"], symbol["kind"]))
                found[tag["path"]] = lines
            places = found.get(tag["path"], {}).get(plain(tag["name"]), [])
            near = any(abs(line - tag["line"]) <= NEAR for line, _ in places)
            # `typedef struct a { … } a;` is one type, which ctags lists at both ends.
            twice = tag["kind"] == "typedef" and any(kind in TYPES for _, kind in places)
            if near or twice:
                count["ours"] += 1
            else:
                count["missed " + tag["kind"]] += 1
                missed.write(f"{tag['path']}:{tag['line']}: {tag['kind']} {tag['name']}\n")
    return count


def main():
    work, report = sys.argv[1], sys.argv[2]
    rows = []
    for line in sys.stdin:
        language, *packages = line.split()
        with open(os.path.join(work, f"missed-{language}.txt"), "w") as missed:
            count = compare(language, packages, work, missed)
        recall = 100 * count["ours"] / max(count["theirs"], 1)
        rest = ", ".join(f"{n} {kind[7:]}" for kind, n in sorted(count.items()) if kind.startswith("missed "))
        size = f"{count['bytes'] / 1e6:.1f} MB"
        rows.append(f"| {language} | {', '.join(packages)} | {count['files']} | {size} | {count['theirs']} | {count['ours']} | {recall:.2f}% | {rest or '–'} |")
        print(rows[-1], flush=True)
    if report:
        with open(report, "r") as old:
            text = old.read()
        head, tail = "<!-- table -->\n", "<!-- end of table -->\n"
        top = "| language | trees | files | size | ctags finds | the index finds | recall | missed |\n|---|---|---|---|---|---|---|---|\n"
        before, after = text.split(head)[0], text.split(tail)[1]
        with open(report, "w") as new:
            new.write(before + head + top + "\n".join(rows) + "\n" + tail + after)


main()
