# SPDX-License-Identifier: Apache-2.0
"""Jobs of real processes, and what ccom-status and ccom-top say of them."""

import json
import subprocess

from harness import case
from harness.case import program
from harness.processes import PATIENCE
from harness.world import World

STATUS, TOP, TRACE, PROGRAM = (program(name) for name in ("ccom-status", "ccom-top", "ccom-trace", "seen_program"))
SCHEMA = json.loads((case.SOURCES / "docs" / "ccom-status.schema.json").read_text(encoding="utf-8"))


class TestCase(case.TestCase):
    def job(self, what, ranks, hosts=1, program=(PROGRAM,), **environment):
        """Ranks of one program, which have said that they are ready."""
        job = self.enterContext(World(ranks, hosts)).start([*program, what], **environment)
        job.wait_for("ready")
        return job

    def short_job(self, **environment):
        return self.enterContext(World(2)).start([PROGRAM, "short"], **environment)


def status(*arguments, prefix=(), program=STATUS):
    """Exit code and JSON."""
    done = subprocess.run([*prefix, program, "--json", *arguments], capture_output=True, text=True, timeout=PATIENCE)
    return done.returncode, json.loads(done.stdout)


def of_job(seen, job):
    """The communicators of this job: other ones of the user may run beside the test."""
    return [each for each in seen["communicators"] if any(rank["pid"] in job.pids for rank in each["seen"])]
