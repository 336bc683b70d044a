# SPDX-License-Identifier: Apache-2.0
"""libccom and what it needs, in one process with torch and what that carries."""
import glob
import os
import re
import subprocess
import sys

import launch
import pytest

pytestmark = pytest.mark.ccom
# Libraries that both sides may carry.
SHARED_NAMES = re.compile(r"^_ZNK?(?:6google8protobuf|4grpc|9grpc_core|4absl)")

GROUP = """
import torch.distributed as dist, torch
dist.init_process_group("ccom", store=dist.HashStore(), rank=0, world_size=1)
x = torch.ones(3)
dist.all_reduce(x)
assert x.tolist() == [1, 1, 1]
"""


def exported(path):
    lines = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].partition("@")[0] for line in lines.splitlines()}


def needed(path):
    found = {}
    for line in subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout.splitlines():
        match = re.match(r"\s*(\S+) => (/\S+)", line)
        if match:
            found[match[1]] = match[2]
    return found


def test_nothing_is_exported_by_both():
    import ccom
    import torch

    theirs = set()
    for path in glob.glob(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch*.so")):
        theirs |= exported(path)
    ours = set()
    library = glob.glob(os.path.join(os.path.dirname(ccom.__file__), "lib", "libccom.so*"))[0]
    for path in needed(library).values():
        ours |= exported(path)
    assert any(SHARED_NAMES.match(name) for name in ours), "the test no longer sees protobuf"
    assert not [name for name in theirs & ours if SHARED_NAMES.match(name)]


def test_that_ccom_stands_in_for_gloo_is_told_once():
    job = launch.torchrun("gloo_by_name.py", count=3, environment={"CCOM_TORCH_REPLACE_GLOO": "1"})
    assert job.output.count("process groups that request gloo use ccom") == 1, job.output


@pytest.mark.parametrize("autoload", ["0", "1"])
@pytest.mark.parametrize("first", ["torch", "ccom.torch"])
def test_either_may_be_imported_first(first, autoload):
    program = f"import {first}, ccom.torch" + GROUP
    launch.run([sys.executable, "-c", program], environment={"TORCH_DEVICE_BACKEND_AUTOLOAD": autoload})
