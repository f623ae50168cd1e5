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
    "c-sharp": ("C#", "method class interface enum struct"),
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
# Tests quote programs in strings, which ctags takes for code; and the map shows tests as one line.
TESTS = re.compile(r"/(tests?|specs?|testing|testdata|test-data|fixtures|__tests__|t|TEST-[^/]*)/", re.IGNORECASE)
TYPES = {"class", "struct", "union", "enum", "interface", "trait", "type"}
KEYWORDS = {"class", "data", "default", "deriving", "infix", "infixl", "infixr", "instance", "type"}
STATEMENTS = {"catch", "fixed", "for", "foreach", "if", "lock", "switch", "synchronized", "try", "using", "while"}
# Lines between the two tools' idea of where a definition stands.
NEAR = 2


def plain(name):
    """A name without what the two tools write differently: blanks, qualifiers, a destructor's tilde."""
    name = re.sub(r"\s+", "", name)
    name = re.sub(r"^.*\[[\"']?(.*?)[\"']?\]$", r"\1", name) if name != "operator[]" else name
    if re.match(r"operator\W", name):
        return name[8:] if name.startswith("operator()") else name[8:].split("(")[0]
    if name.startswith("operator"):
        return name.split("(")[0]
    if re.fullmatch(r"\(.*\)", name):
        return name[1:-1]
    name = name.lstrip("~@")
    # The index cuts names that are longer.
    return (re.split(r"::|[.:]", name)[-1] or name)[:80]


def ours(folder):
    dump = subprocess.run(["target/recall/dump", folder], capture_output=True, check=True).stdout
    return {file["path"]: file for file in map(json.loads, filter(None, dump.decode().split("\n")))}


def mistaken(language, tag):
    """Whether ctags took something for a definition that is none."""
    name, kind, line = tag["name"], tag["kind"], tag.get("pattern", "")
    if re.match(r"(__anon|anonymous|AnonymousFunction|AnonymousClass)", name):
        return True  # A name that it made up.
    if language in ("C#", "Java"):
        return "." in name or name in STATEMENTS  # Calls and statements.
    if language == "JavaScript":
        return kind == "class" and not re.search(r"class|function", line)  # Objects.
    if language == "TypeScript":
        return kind == "alias" and not re.search(r"\btype\s+\w+\s*[=<]", line)  # Imports.
    if language == "Lua":
        # Calls that are given a function; names that are made at run time.
        return ".." in name or not re.search(r"\bfunction\s+[\w.:]+\s*\(|=\s*function\b", line)
    if language == "Sh":
        return not re.fullmatch(r"[\w:.+-]+", name)  # Assignments of arrays, and C in texts.
    if language == "Kotlin":
        # Parameters of lambdas; companions without a name.
        return name == "Companion" or kind == "method" and not re.search(rf"\bfun\b.*\b{re.escape(name)}\W*[(<]", line)
    if language == "Haskell":
        return name in KEYWORDS or kind == "function" and name[0].isupper()  # Types in a signature of several lines.
    if language == "OCaml":
        stem = os.path.basename(tag["path"]).split(".")[0]
        # The file itself, and words of the language.
        return kind == "module" and name == stem.capitalize() or name in ("nonrec", "()", "_")
    return False


def quoted(path):
    """The lines of an Elixir file that are text: examples in its documentation."""
    lines, inside = set(), False
    with open(path, errors="replace") as file:
        for number, line in enumerate(file, 1):
            if inside:
                lines.add(number)
            if re.search(r'^\s*"""|~[sS]?"""$|"""$|^\s*\'\'\'|\'\'\'$', line.rstrip()) and line.count('"""') != 2:
                inside = not inside
    return lines


def theirs(folder, language, kinds):
    command = ["ctags", "--recurse", "--links=no", "--output-format=json", "--fields=+nK", "--pseudo-tags=",
               f"--languages={language}", f"--kinds-{language}=*", "-f", "-", folder]
    texts = {}
    for line in filter(None, subprocess.run(command, capture_output=True, check=True).stdout.decode(errors="replace").split("\n")):
        tag = json.loads(line)
        if tag.get("_type") != "tag" or tag["kind"] not in kinds:
            continue
        if language == "Elixir" and tag["path"] not in texts:
            texts[tag["path"]] = quoted(tag["path"])
        in_text = tag["line"] in texts.get(tag["path"], ())
        yield tag, not (TESTS.search(tag["path"]) or mistaken(language, tag) or in_text)


def compare(language, packages, work, missed):
    name, kinds = KINDS[language]
    count = collections.Counter()
    for package in packages:
        folder = os.path.join(work, "trees", package)
        files = ours(folder)
        wanted = FILES.get(language, {language})
        for file in files.values():
            if file["language"] in wanted and not TESTS.search(file["path"]):
                count["files"] += 1
                count["bytes"] += os.path.getsize(file["path"])
        seen = set()
        found = {}
        for tag, counts in theirs(folder, name, set(kinds.split())):
            file = files.get(tag["path"])
            key = (tag["path"], tag["name"], tag["line"])
            if key in seen:
                continue
            seen.add(key)
            if file and file["skipped"]:
                count["skipped"] += 1
                continue
            count["all theirs"] += 1
            count["theirs"] += counts
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
                count["all ours"] += 1
                count["ours"] += counts
            elif counts:
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
        raw = 100 * count["all ours"] / max(count["all theirs"], 1)
        rest = ", ".join(f"{n} {kind[7:]}" for kind, n in sorted(count.items()) if kind.startswith("missed "))
        size = f"{count['bytes'] / 1e6:.1f} MB"
        rows.append(f"| {language} | {', '.join(packages)} | {count['files']} | {size} | {count['theirs']} | {count['ours']} | {recall:.2f}% | {raw:.1f}% | {rest or '–'} |")
        print(rows[-1], flush=True)
    if report:
        with open(report, "r") as old:
            text = old.read()
        head, tail = "<!-- table -->\n", "<!-- end of table -->\n"
        top = "| language | trees | files | size | ctags finds | the index finds | recall | with nothing left out | missed |\n|---|---|---|---|---|---|---|---|---|\n"
        before, after = text.split(head)[0], text.split(tail)[1]
        with open(report, "w") as new:
            new.write(before + head + top + "\n".join(rows) + "\n" + tail + after)


main()
