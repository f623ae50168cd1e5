#!/usr/bin/env python3
"""Fetches public source trees to measure overviews on: trees.py FOLDER

- `pi`, `pi-2025`: the pi coding agent's repository, now and as old as npm has it, from its npm
  packages. They hold compiled files, but their source maps hold the sources.
- `scrapy`, `django`: source packages from PyPI.
- `openai-agents`: the same of a fixed version, 709 files with an AGENTS.md; docs/clients.md compares
  clients in it.

Folders that exist are left alone.
"""

import glob
import json
import os
import posixpath
import subprocess
import sys
import tarfile
import tempfile

PI = {"pi": ("earendil-works", "0.87.1"), "pi-2025": ("mariozechner", "0.13.2")}
# Packages, and their folders in the repository.
PI_PACKAGES = {"coding-agent": "coding-agent", "tui": "tui", "ai": "ai", "agent-core": "agent"}
PYPI = {"scrapy": None, "django": None, "openai-agents": "0.6.7"}  # None: the newest version


def download(command):
    """The one archive that a package manager's command puts into its working folder."""
    with tempfile.TemporaryDirectory() as place:
        subprocess.run(command, cwd=place, check=True, stdout=subprocess.DEVNULL)
        found = glob.glob(os.path.join(place, "*.t*gz"))
        with tarfile.open(found[0], mode="r:gz") as archive:
            yield from members(archive)


def write(folder, path, content):
    path = os.path.join(folder, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def members(archive):
    """The files of a package without its top folder."""
    for member in archive:
        path = posixpath.normpath(member.name.partition("/")[2])
        if member.isfile() and not path.startswith(("..", "/")):
            yield path, archive.extractfile(member).read()


def fetch_pi(folder, scope, version):
    for package, name in PI_PACKAGES.items():
        top = f"packages/{name}"
        for path, content in download(["npm", "pack", "--silent", f"@{scope}/pi-{package}@{version}"]):
            if path.endswith(".js.map"):
                mapped = json.loads(content)
                sources = zip(mapped["sources"], mapped.get("sourcesContent") or [])
                for source, text in sources:
                    place = posixpath.normpath(posixpath.join(posixpath.dirname(path), source))
                    if text and not place.startswith(("..", "/")):
                        write(folder, f"{top}/{place}", text.encode())
            elif not path.startswith("dist/"):
                write(folder, f"{top}/{path}", content)


def fetch_pypi(folder, name, version):
    wanted = f"{name}=={version}" if version else name
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
    for path, content in download([*pip, wanted]):
        write(folder, path, content)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for name in [*PI, *PYPI]:
        folder = os.path.join(sys.argv[1], name)
        if not os.path.exists(folder):
            fetch_pi(folder, *PI[name]) if name in PI else fetch_pypi(folder, name, PYPI[name])
        count = sum(len(files) for _, _, files in os.walk(folder))
        print(f"{folder}: {count} files")


if __name__ == "__main__":
    main()
