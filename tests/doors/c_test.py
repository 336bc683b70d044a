# SPDX-License-Identifier: Apache-2.0
"""The programs in C of the front page and of the first tutorial: compiled, run, and what users see when ranks disagree
or die.
"""

import os
import pathlib
import signal
import subprocess
import tempfile

import programs
from harness.case import SOURCES, TestCase, program

COMPILER, LIBRARY = os.environ["CCOM_TEST_COMPILER"], os.environ["CCOM_TEST_LIBRARY"]
INCLUDE, RUN = SOURCES / "include", program("ccom-run")
KILL_RANK_2 = 'if [ "$CCOM_RANK" = 2 ]; then kill -9 $$; else exec "$0"; fi'


class Documented(TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def compile(self, page, name):
        source = pathlib.Path(self.folder, f"{name}.c")
        source.write_text(programs.programs(page)[name], encoding="utf-8")
        program = source.with_suffix("")
        subprocess.run([COMPILER, "-Wall", "-Werror", "-I", INCLUDE, source, "-o", program, LIBRARY,
                        f"-Wl,-rpath,{os.path.dirname(LIBRARY)}"], check=True)
        return str(program)

    def run_ranks(self, *words):
        return subprocess.run([RUN, "-n", "4", "--timeout", "60", *words], capture_output=True, text=True,
                              cwd=self.folder)

    def test_front_page(self):
        done = self.run_ranks(self.compile("README.md", "sum.c"))
        self.assertEqual((done.returncode, done.stdout), (0, programs.behind("README.md", "sum.c")[1]), done.stderr)

    def test_tutorial(self):
        done = self.run_ranks(self.compile("docs/tutorials/c.md", "c"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stdout.splitlines()), [f"rank {rank} of 4: mean 1.5" for rank in range(4)])

    def test_without_a_launcher(self):
        done = subprocess.run([self.compile("docs/tutorials/c.md", "c")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("this process has no rank", done.stderr)
        self.assertIn("ccom-run", done.stderr)

    def test_ranks_that_disagree(self):
        done = self.run_ranks(self.compile("docs/tutorials/c.md", "c"), "differ")
        self.assertEqual(done.returncode, 1)
        self.assertIn("rank 1: allreduce float32 avg count 999 (call 1)", done.stderr)
        self.assertIn("count 1000 (call 1)", done.stderr)

    def test_a_rank_that_is_killed(self):
        done = self.run_ranks("/bin/sh", "-c", KILL_RANK_2, self.compile("docs/tutorials/c.md", "c"))
        self.assertEqual(done.returncode, 128 + signal.SIGKILL, done.stderr)
        self.assertIn("rank 2", done.stderr)
