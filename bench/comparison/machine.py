# SPDX-License-Identifier: Apache-2.0
"""What a result should say about the machine that it comes from."""
import os
import platform
import re


def field(path, name):
    try:
        with open(path, encoding="utf-8") as file:
            for line in file:
                key, _, value = line.partition(":")
                if key.strip() == name:
                    return value.strip()
    except OSError:
        pass
    return ""


def processor():
    """The name in /proc/cpuinfo, with family and model, since virtual machines often hide the rest of the name."""
    name = field("/proc/cpuinfo", "model name") or platform.machine()
    family, model = field("/proc/cpuinfo", "cpu family"), field("/proc/cpuinfo", "model")
    return f"{name}, family {family}, model {model}" if family and model else name


def slug():
    """The machine in the names of files: "amd-epyc-family25-model1-2cpu"."""
    name = re.sub(r"\(\w+\)|\b(processor|cpu)\b|@.*?(?=,|$)", " ", processor().lower())
    name = re.sub(r"\b(family|model) (\d+)", r"\1\2", name)
    return "-".join([*re.findall(r"[a-z0-9]+", name), f"{len(os.sched_getaffinity(0))}cpu"])


def describe():
    memory = field("/proc/meminfo", "MemTotal").split()
    return {
        "cpu": processor(),
        "processors": len(os.sched_getaffinity(0)),
        "memory_gib": round(int(memory[0]) / (1 << 20), 1) if memory else None,
        "kernel": platform.release(),
        "system": platform.freedesktop_os_release().get("PRETTY_NAME", "") if os.path.exists("/etc/os-release") else "",
        "python": platform.python_version(),
    }
