# SPDX-License-Identifier: Apache-2.0
"""CCOM_PLAN: the example runs with right results; the same without a step is refused before a byte of it moves, and the
error names the missing contribution; other contents on one rank, no file and no JSON are errors on all ranks.
"""
import os
import pathlib
import tempfile

from harness.case import SOURCES, TestCase, program
from harness.world import World

BENCH = program("ccom-bench")
EXAMPLE = SOURCES / "examples" / "plans" / "recursive_doubling_4.json"


class PlanFiles(TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def start(self, plans):
        command = [BENCH, "allreduce", "--sizes", "4,4K,300K", "-n", "1", "-w", "0", "--check", "every",
                   "--no-progress"]
        return self.enterContext(World(4)).start(command, CCOM_PLAN=[str(plan) for plan in plans],
                                                 CCOM_INIT_TIMEOUT_MS="20000")

    def is_refused(self, plans, error):
        for end in self.start(plans).wait():
            self.assertNotIn(end.code, (0, None))
            self.assertRegex(end.output + end.errors, error)

    def written(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")
        return self.folder / name

    def test_the_example_runs(self):
        self.assertIn("my_doubling", self.start([EXAMPLE] * 4).succeed()[0].output)

    def test_a_plan_without_a_step(self):
        """Rank 3's second exchange is dropped, and rank 1's half of it."""
        text = EXAMPLE.read_text(encoding="utf-8")
        for whole, part in (('"send tmp[0] -> rank 3",', ""), ('"recv-reduce out[0] = tmp[0] + rank 1, complete"',
                                                              '"copy out[0] = tmp[0], complete"')):
            self.assertIn(whole, text)
            text = text.replace(whole, part)
        self.is_refused([self.written("dropped.json", text)] * 4, "lacks the contributions of ranks")

    def test_other_contents_on_one_rank(self):
        other = self.written("other.json", EXAMPLE.read_text(encoding="utf-8").replace("my_doubling", "other"))
        self.is_refused([EXAMPLE, EXAMPLE, other, EXAMPLE], "rank 2 has other contents in its plan file")

    def test_a_missing_file(self):
        self.is_refused([self.folder / "none.json"] * 4, "none.json: open .*none.json: No such file")

    def test_u8_a_fifo_delays_no_start(self):
        os.mkfifo(self.folder / "fifo.json")
        self.is_refused([self.folder / "fifo.json"] * 4, "fifo.json: not a regular file")

    def test_a_malformed_file(self):
        self.is_refused([self.written("bad.json", '{"version": 1, "plans": 3}')] * 4, "bad.json.*plans")
