# SPDX-License-Identifier: Apache-2.0
"""Jobs of ccom-run whose ranks run a file of programs/ or an example."""

import os

import launch

FOLDER = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(FOLDER))
ENVIRONMENT = {"JAX_PLATFORMS": "cpu"}


def command(path, *arguments):
    return [os.path.join(FOLDER, "programs", path), *arguments]


def run(size, path, *arguments, code=0, timeout=240, environment=(), options=()):
    """What its ranks print. The job must end with this code, or, for None, anyhow, but in time."""
    environment = {**ENVIRONMENT, **dict(environment)}
    return launch.run(size, command(path, *arguments), *options, code=code, timeout=timeout, environment=environment)
