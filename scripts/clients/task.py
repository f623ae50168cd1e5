"""The task that every client does: the tree it works on, and the answers that it gets."""

import json
import os
import shutil
import subprocess

PROMPT = (
    "The reduced rate of the tariff is wrong: it should be 0.07. Find where it is defined, "
    "correct it, run the tests, and tell me what you changed."
)
CHANGED_FILE = "tariff/rates.py"
OLD, NEW = "REDUCED = 0.08", "REDUCED = 0.07"
COMMAND = "python3 -m unittest tests.test_invoice"
FINAL_ANSWER = "The reduced rate is now 0.07 in tariff/rates.py, and all tests pass."

SECOND_PROMPT = "Does anything else use the reduced rate?"
SECOND_ANSWER = "No: only rate_of in tariff/rates.py does."

# The steps of the task, in order, each one request; the last request gets FINAL_ANSWER.
STEPS = {
    "look": "I will look around first.",
    "search": "Now the place where the rate is defined.",
    "read_first": "It is in the rates.",
    "read_second": "The invoice uses it.",
    "edit": "I correct the rate.",
    "run": "Now the tests.",
}

RATES = '''"""Rates of the tariff, by kind of goods."""

STANDARD = 0.19
REDUCED = 0.08
FREE = 0.0

REDUCED_KINDS = frozenset({"book", "bread", "milk", "newspaper"})
FREE_KINDS = frozenset({"stamp"})


def rate_of(kind):
    """The rate of a kind of goods; the standard rate if nothing else is known."""
    if kind in FREE_KINDS:
        return FREE
    if kind in REDUCED_KINDS:
        return REDUCED
    return STANDARD
'''

INVOICE = '''"""Invoices: positions, their taxes, and the sum."""

from dataclasses import dataclass, field

from tariff.rates import rate_of


@dataclass(frozen=True)
class Position:
    kind: str
    cents: int
    count: int = 1

    def net(self):
        return self.cents * self.count

    def tax(self):
        return round(self.net() * rate_of(self.kind))


@dataclass
class Invoice:
    number: int
    positions: list = field(default_factory=list)

    def add(self, position):
        self.positions.append(position)
        return self

    def net(self):
        return sum(position.net() for position in self.positions)

    def tax(self):
        return sum(position.tax() for position in self.positions)

    def gross(self):
        return self.net() + self.tax()
'''

REPORT = '''"""Texts of invoices, one line per position."""


def euros(cents):
    return f"{cents // 100}.{cents % 100:02d}"


def render(invoice):
    lines = [f"Invoice {invoice.number}"]
    for position in invoice.positions:
        lines.append(f"{position.count:>4} {position.kind:<20} {euros(position.net()):>10}")
    lines.append(f"{'net':>25} {euros(invoice.net()):>10}")
    lines.append(f"{'tax':>25} {euros(invoice.tax()):>10}")
    lines.append(f"{'gross':>25} {euros(invoice.gross()):>10}")
    return "\\n".join(lines)
'''

STORE = '''"""Invoices on disk, one JSON file each."""

import json
from pathlib import Path

from tariff.invoice import Invoice, Position


def save(invoice, folder):
    positions = [vars(position) for position in invoice.positions]
    text = json.dumps({"number": invoice.number, "positions": positions}, indent=2)
    Path(folder, f"{invoice.number}.json").write_text(text)


def load(number, folder):
    found = json.loads(Path(folder, f"{number}.json").read_text())
    return Invoice(found["number"], [Position(**position) for position in found["positions"]])
'''

TESTS = '''import unittest

from tariff.invoice import Invoice, Position
from tariff.report import render


class InvoiceTest(unittest.TestCase):
    def test_standard_rate(self):
        self.assertEqual(Invoice(1).add(Position("chair", 10000)).tax(), 1900)

    def test_reduced_rate(self):
        self.assertEqual(Invoice(2).add(Position("book", 1000, 2)).gross(), 2140)

    def test_report(self):
        self.assertIn("gross", render(Invoice(3).add(Position("stamp", 85, 10))))
'''

README = """# tariff

Taxes of small invoices. `tariff/rates.py` holds the rates, `tariff/invoice.py` applies them,
`tariff/report.py` prints invoices, `tariff/store.py` keeps them on disk.

Run the tests with `python3 -m unittest discover -s tests`.
"""

FILES = {
    "README.md": README,
    "pyproject.toml": '[project]\nname = "tariff"\nversion = "0.3.0"\nrequires-python = ">=3.9"\n',
    ".gitignore": "__pycache__/\n*.pyc\n.aider*\n",
    "tariff/__init__.py": "",
    "tariff/rates.py": RATES,
    "tariff/invoice.py": INVOICE,
    "tariff/report.py": REPORT,
    "tariff/store.py": STORE,
    "tests/__init__.py": "",
    "tests/test_invoice.py": TESTS,
}


def module(number):
    """A module that has nothing to do with the task, to make the tree larger."""
    name = f"Group{number:03}"
    return f'''"""Goods of group {number}: names, weights, and how they are packed."""

from dataclasses import dataclass

WEIGHTS = {{"small": {number + 1}, "medium": {number + 7}, "large": {number + 31}}}


@dataclass(frozen=True)
class {name}Item:
    name: str
    size: str
    fragile: bool = False

    def weight(self):
        return WEIGHTS[self.size]


class {name}Box:
    """Holds items of the group up to a weight."""

    def __init__(self, most):
        self.most = most
        self.items = []

    def weight(self):
        return sum(item.weight() for item in self.items)

    def fits(self, item):
        return self.weight() + item.weight() <= self.most

    def pack(self, item):
        if not self.fits(item):
            raise ValueError(f"{{item.name}} does not fit")
        self.items.append(item)
        return self


def boxes_for_group_{number}(items, most):
    """Packs items into as few boxes as come out by taking the heaviest first."""
    boxes = []
    for item in sorted(items, key={name}Item.weight, reverse=True):
        box = next((box for box in boxes if box.fits(item)), None)
        if box is None:
            box = {name}Box(most)
            boxes.append(box)
        box.pack(item)
    return boxes
'''


def write_tree(root, environment, modules, other_tree):
    """Writes the tree and commits it, with fixed dates, so that every run starts from the same.

    The files of `other_tree` are around it: they have nothing to do with the task.
    """
    if other_tree:
        ignore = shutil.ignore_patterns(".git")
        shutil.copytree(other_tree, root, ignore=ignore, symlinks=True, dirs_exist_ok=True)
    more = {f"tariff/goods/group_{number:03}.py": module(number) for number in range(modules)}
    for name, text in (FILES | more).items():
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
    date = "2026-01-05T12:00:00+00:00"
    environment = environment | {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    for arguments in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "Rates, invoices, reports"]):
        subprocess.run(["git", *arguments], cwd=root, env=environment, check=True, timeout=30)


def is_done(root):
    """Whether the client changed the file as it was told."""
    with open(os.path.join(root, CHANGED_FILE)) as file:
        text = file.read()
    return NEW in text and OLD not in text


def answers(client, fill):
    """The simulator's script for a client: its own tools, step by step. JSON is YAML, too."""
    turns = []
    if "turns" in client:  # a client without tools, whose answers are text alone
        turns = [{"text": fill(text)} for text in client["turns"]]
    for step, words in STEPS.items():
        call = client.get("calls", {}).get(step)
        if call:
            arguments = fill(call.get("arguments", {}))
            turns.append({
                "when": {"has_tool": call["name"]},
                "text": words,
                "tool_calls": [{"name": call["name"], "arguments": arguments}],
            })
    if "calls" in client:
        last = list(client["calls"].values())[-1]["name"]
        turn = {"when": {"has_tool": last}, "text": FINAL_ANSWER}
        turns.append(turn)
        turns.append({"when": {"has_tool": last}, "text": SECOND_ANSWER})
    # Titles, summaries, ratings of the task.
    default = {"text": fill(client.get("side_answer", "Correct the reduced rate"))}
    return json.dumps({"turns": turns, "default": default}, indent=1)
