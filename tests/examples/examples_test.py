# SPDX-License-Identifier: Apache-2.0
"""The examples do what they say, started by hand; and the one that learns learns the same on one rank and on four, as
processes and as threads.
"""
import filecmp
import subprocess
import tempfile

from harness.case import TestCase, program
from harness.processes import clean_environment
from harness.world import World


class Examples(TestCase):
    def says(self, example, ranks, lines, code=0):
        """Each rank says lines(rank), and the job ends with that code, or with code(rank)."""
        for end in self.enterContext(World(ranks)).run([program(example)], code=code):
            if end.code == 0:
                for line in lines(end.rank):
                    self.assertIn(line, end.output.splitlines())

    def test_allreduce_c(self):
        self.says("allreduce_c", 3, lambda rank: [f"rank {rank} of 3: sum 6, expected 6"])

    def test_groups_c(self):
        """Rows are {0, 1} and {2, 3}, columns {0, 2} and {1, 3}."""
        self.says("groups_c", 4, lambda rank: [f"rank {rank} of 4: row {[1, 5][rank // 2]}, column {[2, 4][rank % 2]}"])

    def test_operators_c(self):
        """The ranks' maps are composed in their order: 2 (2 (2 x + 2) + 1) + 0."""
        self.says("operators_c", 3, lambda rank: [f"rank {rank} of 3: x -> 8 x + 10"])

    def test_survivors_c(self):
        """The last rank kills itself; the sum is that of three then."""
        self.says("survivors_c", 4, lambda rank: ["3 ranks are left: 0 1 2", f"rank {rank} of 4: the last sum is 3"],
                  code=lambda rank: -9 if rank == 3 else 0)

    def test_tokens_c(self):
        """Experts get tokens and send them back doubled."""
        def lines(rank):
            tokens = 3 + 3 * rank
            return [f"rank {rank} of 3: {tokens} tokens, {tokens} for this expert, 0 wrong"]

        self.says("tokens_c", 3, lines)

    def test_train_digits(self):
        """Losses within 1e-4 in every epoch, and an accuracy above 0.95. Processes and threads combine in the same
        order: not close, but equal.
        """
        folder = self.enterContext(tempfile.TemporaryDirectory())
        runs = {"one": ["-np", "1"], "processes": ["-np", "4"], "threads": ["-np", "4", "--threads"]}
        for name, options in runs.items():
            command = [program("train_digits"), *options, "--epochs", "20", "--curve", f"{folder}/{name}"]
            done = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, env=clean_environment())
            self.assertGreater(float(done.stdout.split()[-1]), 0.95, done.stdout)
            subprocess.run([program("compare_curves"), f"{folder}/one", f"{folder}/{name}", "1e-4"], check=True)
        self.assertTrue(filecmp.cmp(f"{folder}/processes", f"{folder}/threads", shallow=False))
