# SPDX-License-Identifier: Apache-2.0
"""What a result should say about the machine that it comes from."""
import os
import platform


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


def describe():
    memory = field("/proc/meminfo", "MemTotal").split()
    return {
        "cpu": field("/proc/cpuinfo", "model name") or platform.machine(),
        "processors": len(os.sched_getaffinity(0)),
        "memory_gib": round(int(memory[0]) / (1 << 20), 1) if memory else None,
        "kernel": platform.release(),
        "system": platform.freedesktop_os_release().get("PRETTY_NAME", "") if os.path.exists("/etc/os-release") else "",
        "python": platform.python_version(),
    }
