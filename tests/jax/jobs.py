# SPDX-License-Identifier: Apache-2.0
"""Jobs of ccom-run whose ranks run a file of programs/ or an example."""

import os
import subprocess
import sys

import launch

FOLDER = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(FOLDER))


def start(size, path, *arguments, environment=(), options=()):
    clean = {name: value for name, value in os.environ.items() if name not in launch.FOREIGN}
    clean |= {"CCOM_SOCKET_IFNAME": "lo", "JAX_PLATFORMS": "cpu", **dict(environment)}
    command = [
        launch.RUN,
        "-n",
        str(size),
        *options,
        sys.executable,
        os.path.join(FOLDER, "programs", path),
        *arguments,
    ]
    return subprocess.Popen(
        command, env=clean, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def run(size, path, *arguments, code=0, timeout=240, environment=(), options=()):
    """What its ranks print. The job must end with this code, or, for None, anyhow, but in time."""
    job = start(size, path, *arguments, environment=environment, options=("--timeout", str(timeout), *options))
    output, _ = job.communicate(timeout=timeout + 20)
    assert code is None or job.returncode == code, f"code {job.returncode}\n{output}"
    return output
