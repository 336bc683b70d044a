# SPDX-License-Identifier: Apache-2.0
"""Runs a program up to its destroy_process_group and ends the process there: leave.py PROGRAM ARGUMENTS...

For Gloo, whose own end now and then hangs or aborts: its destructor holds the GIL and joins threads that want it.
"""
import os
import runpy
import sys

import torch.distributed as dist


def leave(*_):
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    dist.destroy_process_group = leave
    sys.argv = sys.argv[1:]
    sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
    runpy.run_path(sys.argv[0], run_name="__main__")
