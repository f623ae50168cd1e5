#!/usr/bin/env python3
"""Rebuild crates/models/data/models.json from the price list in the LiteLLM package (MIT).

    scripts/refresh-models.py                     newest package on PyPI
    scripts/refresh-models.py --version 1.106.2   that version
    scripts/refresh-models.py --wheel FILE        a wheel that is here already
    scripts/refresh-models.py --check …           compare only; write nothing

What the list does not know (forms of thinking, levels of effort, system messages, bound reasoning)
comes from scripts/model-facts.json, which is kept by hand. A model that the list no longer has stays,
marked as gone: old sessions still need its price. Surprises (a price that moved by a factor of ten, a
current model that vanished, a window that shrank by half) stop the script; --accept takes them.
"""

import argparse
import fnmatch
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
DATA = os.path.join(ROOT, "crates/models/data/models.json")
FACTS = os.path.join(ROOT, "scripts/model-facts.json")
LIST = "litellm/model_prices_and_context_window_backup.json"

# The list's name of a provider, our id, and the prefix of its model names in the list.
PROVIDERS = [
    ("anthropic", "anthropic", ""),
    ("openai", "openai", ""),
    ("gemini", "gemini", "gemini/"),
    ("openrouter", "openrouter", "openrouter/"),
    ("mistral", "mistral", "mistral/"),
    ("xai", "xai", "xai/"),
    ("moonshot", "moonshot", "moonshot/"),
    ("zai", "zai", "zai/"),
    ("deepseek", "deepseek", "deepseek/"),
    ("groq", "groq", "groq/"),
    ("minimax", "minimax", "minimax/"),
]
# Models that no coding agent talks to.
OTHER_USES = re.compile(
    r"(^|[-/])(audio|realtime|transcribe|tts|image|embed|moderation|live|robotics|computer-use|deep-research|"
    r"whisper|native-audio|lyria|learnlm|guard|voxtral|rosalind|cyber|search-preview|dall-e|container)|^ft:|^us/|^eu/|^global/|^fast/"
)
FLAGS = [
    ("vision", "supports_vision"),
    ("tools", "supports_function_calling"),
    ("reasoning", "supports_reasoning"),
    ("caching", "supports_prompt_caching"),
]
PRICES = [
    ("input", "input_cost_per_token"),
    ("output", "output_cost_per_token"),
    ("cache_read", "cache_read_input_token_cost"),
    ("cache_write", "cache_creation_input_token_cost"),
    ("cache_write_1h", "cache_creation_input_token_cost_above_1hr"),
]
ANTHROPIC_SHARES = {"cache_read": 0.1, "cache_write": 1.25, "cache_write_1h": 2.0}


def per_million(price):
    return float(f"{price * 1e6:.10g}")


def prices(entry, suffix=""):
    found = {}
    for ours, theirs in PRICES:
        value = entry.get(theirs + suffix)
        if value is not None:
            found[ours] = per_million(value)
    return found


def long_prices(entry):
    sizes = {int(size) for key in entry for size in re.findall(r"_above_(\d+)k_tokens$", key)}
    rows = []
    for size in sorted(sizes):
        row = prices(entry, f"_above_{size}k_tokens")
        if row:
            rows.append({"tokens": size * 1000, **row})
    return rows


def model_row(provider, name, entry):
    price = prices(entry)
    if provider == "anthropic" and "input" in price:
        for field, share in ANTHROPIC_SHARES.items():
            price.setdefault(field, per_million(price["input"] * share / 1e6))
    inputs, most = entry.get("max_input_tokens"), entry.get("max_output_tokens") or entry.get("max_tokens")
    if not price.get("input") and not price.get("output") and not inputs:
        return None
    row = {"provider": provider, "id": name}
    # OpenAI's list gives the largest input, which is less than the window: the safe figure.
    if inputs:
        row["context"] = int(inputs)
    if most:
        row["max_output"] = int(most)
    if price:
        row["price"] = price
    if above := long_prices(entry):
        row["price_above"] = above
    if minimum := entry.get("prompt_cache_min_tokens"):
        row["cache_min_tokens"] = int(minimum)
    for ours, theirs in FLAGS:
        if entry.get(theirs):
            row[ours] = True
    if not entry.get("supports_function_calling"):
        row["tools"] = False
    if entry.get("supports_assistant_prefill") is False:
        row["prefill"] = False
    if entry.get("supports_sampling_params") is False:
        row["sampling"] = False
    if entry.get("supports_forced_tool_use") is False:
        row["forced_tool"] = False
    if entry.get("deprecation_date"):
        row["deprecated"] = entry["deprecation_date"]
    return row


def rows_of(listed):
    rows = {}
    for name, entry in listed.items():
        if entry.get("mode") not in ("chat", "responses"):
            continue
        for theirs, ours, prefix in PROVIDERS:
            if entry.get("litellm_provider") != theirs or not name.startswith(prefix):
                continue
            model = name[len(prefix):]
            if OTHER_USES.search(model) or ("/" in model and ours in ("anthropic", "openai", "gemini")):
                continue
            if row := model_row(ours, model, entry):
                rows[(ours, model)] = row
    return rows


def matches(pattern, name):
    return any(fnmatch.fnmatchcase(name, part.strip()) for part in pattern.split("|"))


def apply_facts(rows, facts):
    for fact in facts["models"]:
        hits = [row for row in rows.values() if row["provider"] == fact["provider"] and matches(fact["models"], row["id"])]
        if not hits and "add" not in fact:
            sys.exit(f"model-facts.json: no model of {fact['provider']} matches {fact['models']}")
        if "add" in fact and not hits:
            row = {"provider": fact["provider"], "id": fact["models"], **fact["add"]}
            rows[(row["provider"], row["id"])] = row
            hits = [row]
        for row in hits:
            row.update(fact.get("set", {}))


def surprises(old, new):
    found = []
    for key, before in old.items():
        name = "/".join(key)
        after = new.get(key)
        if after is None or (after.get("gone") and not before.get("gone")):
            if not before.get("gone") and not before.get("deprecated"):
                found.append(f"{name} vanished from the list")
            continue
        for field, price in before.get("price", {}).items():
            now = after.get("price", {}).get(field)
            if price and now and not 0.1 < now / price < 10:
                found.append(f"{name}: {field} moved from {price} to {now}")
        window, now = before.get("context"), after.get("context")
        if window and now and now * 2 <= window:
            found.append(f"{name}: the window shrank from {window} to {now}")
    return found


def read_wheel(arguments):
    if arguments.wheel:
        return arguments.wheel
    folder = tempfile.mkdtemp()
    package = "litellm" + (f"=={arguments.version}" if arguments.version else "")
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, package], check=True)
    return glob.glob(os.path.join(folder, "*.whl"))[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", help="the LiteLLM version to take")
    parser.add_argument("--wheel", help="a LiteLLM wheel that is here already")
    parser.add_argument("--check", action="store_true", help="compare only; write nothing")
    parser.add_argument("--accept", action="store_true", help="write in spite of surprises")
    arguments = parser.parse_args()
    wheel = read_wheel(arguments)
    version = os.path.basename(wheel).split("-")[1]
    with zipfile.ZipFile(wheel) as archive:
        listed = json.loads(archive.read(LIST))
        as_of = "%04d-%02d" % archive.getinfo(LIST).date_time[:2]
    with open(DATA) as file:
        old = {(row["provider"], row["id"]): row for row in json.load(file)["models"]}
    with open(FACTS) as file:
        facts = json.load(file)
    rows = rows_of(listed)
    if not rows:
        sys.exit("the list has no model that we know how to read")
    apply_facts(rows, facts)
    for key, row in old.items():
        if key not in rows:
            rows[key] = {**row, "gone": True}
    found = surprises(old, rows)
    for line in found:
        print("surprise:", line)
    if arguments.check:
        print(f"LiteLLM {version}: {len(rows)} models, {len(found)} surprises")
        sys.exit(1 if found else 0)
    if found and not arguments.accept:
        sys.exit("nothing was written; look at the surprises, then run again with --accept")
    if as_of < "2020":  # wheels built reproducibly carry no date
        as_of = facts["as_of"]
    about = (
        "Model facts: prices in US dollars per million tokens, windows in tokens. Written by "
        f"scripts/refresh-models.py from the price list in the LiteLLM package {version} (MIT) and from "
        "scripts/model-facts.json. Anthropic's documented multipliers fill the cache prices that the list lacks. "
        "gone: no longer in the list. A figure that is absent is unknown."
    )
    lines = [json.dumps(row, separators=(",", ":")) for _, row in sorted(rows.items())]
    text = '{\n"about": %s,\n"as_of": "%s",\n"models": [\n%s\n]\n}\n' % (json.dumps(about), as_of, ",\n".join(lines))
    with open(DATA, "w") as file:
        file.write(text)
    print(f"LiteLLM {version}: {len(rows)} models written to {os.path.relpath(DATA)}")


if __name__ == "__main__":
    main()
