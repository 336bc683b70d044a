# SPDX-License-Identifier: Apache-2.0
"""What `import torch` alone leaves in a process, as JSON: threads, descriptors and libraries of ccom."""
import json
import os

import torch  # noqa: F401
import torch.distributed as dist

with open("/proc/self/maps", encoding="utf-8") as file:
    libraries = sorted({line.split()[-1] for line in file
                        if "ccom" in line.rpartition("/")[2] or "/site-packages/ccom/" in line})
print(json.dumps({
    "threads": len(os.listdir("/proc/self/task")),
    "descriptors": len(os.listdir("/proc/self/fd")),
    "libraries": libraries,
    "registered": hasattr(dist.Backend, "CCOM"),
}))
