"""Installs the clients, each into a folder of its own, with the versions that their settings pin."""

import os
import shutil
import subprocess
import sys

NODE = {"installed_as": "node", "npm": "node@22"}
INSTALL_SECONDS = 900


def node_is_current():
    """Whether the system's Node is 22 or later."""
    try:
        version = subprocess.run(["node", "--version"], capture_output=True, text=True, timeout=20).stdout
        return int(version.strip().lstrip("v").split(".")[0]) >= 22
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return False


def bin_folder(packages, client):
    """The folder of the commands of an installed client."""
    folder = os.path.join(packages, client["installed_as"])
    return os.path.join(folder, "bin" if "pypi" in client else "node_modules/.bin")


def install(packages, client):
    """Installs a client unless this version is there."""
    package = client.get("npm") or client.get("pypi")
    if package is None:
        return
    folder = os.path.join(packages, client["installed_as"])
    mark = os.path.join(folder, ".installed")
    if os.path.exists(mark) and open(mark).read() == package:
        return
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    print(f"installing {package}", file=sys.stderr)
    if "npm" in client:
        commands = [["npm", "install", "--prefix", folder, "--no-audit", "--no-fund", "--loglevel=error", package]]
    else:
        commands = [[sys.executable, "-m", "venv", folder], [f"{folder}/bin/pip", "install", "-q", package]]
    for command in commands:
        subprocess.run(command, check=True, timeout=INSTALL_SECONDS, stdout=sys.stderr)
    with open(mark, "w") as file:
        file.write(package)
