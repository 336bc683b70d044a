# SPDX-License-Identifier: Apache-2.0
"""Digests of what a test case depends on: contents alone, so two clones with equal contents have equal digests."""

import functools
import hashlib
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = (".cc", ".h", ".c")  # they are in the programs


@functools.cache
def of_file(path):
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        return "none"


def of_all(paths, *texts):
    """Of files, in any order, by their contents and names, and of some texts."""
    digest = hashlib.sha256()
    for path in sorted({os.path.realpath(path) for path in paths}):
        digest.update(f"{os.path.basename(path)}\0{of_file(path)}\0".encode())
    for text in texts:
        digest.update(text.encode() + b"\0")
    return digest.hexdigest()


@functools.cache
def tracked_files():
    """All files of the project that are under version control, or will be."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return tuple(name for name in listed.split("\0") if name)


@functools.cache
def files_below(folder, with_sources=True):
    """Absolute paths of the project's files in a folder, named from the root; "" is the root."""
    prefix = f"{folder}/" if folder else ""
    return tuple(
        str(ROOT / name)
        for name in tracked_files()
        if name.startswith(prefix) and (with_sources or not name.endswith(SOURCES))
    )


@functools.cache
def machine():
    """What cases depend on besides the project: the distribution."""
    with open("/etc/os-release", encoding="utf-8") as file:
        return "".join(line for line in file if line.startswith(("ID=", "VERSION_ID=")))


@functools.cache
def libraries_of(program):
    """Paths of shared libraries below the same build folder that a program loads."""
    with open(program, "rb") as file:
        if file.read(4) != b"\x7fELF":
            return ()
    listed = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    build = os.path.realpath(program).split("/build/")[0] + "/build/"
    found = (match.group(1) for match in re.finditer(r"=> (\S+) \(", listed))
    return tuple(path for path in found if os.path.realpath(path).startswith(build))
