# SPDX-License-Identifier: Apache-2.0
"""ccom under Slurm itself (slurm_cluster.py): what docs/tutorials/slurm.md and docs/launchers.md say, the scripts of
examples/clusters as they stand, and what users see when tasks die, disagree or are started again."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from harness.case import SOURCES, TestCase, program
from harness.processes import until
from slurm_cluster import Cluster, in_own_namespaces

sys.path.insert(0, str(SOURCES / "tests" / "doors"))
import programs  # noqa: E402

in_own_namespaces()
SCRIPTS = SOURCES / "examples" / "clusters"
TORCH = SOURCES / "build" / "torch" / "bin"
RIGHT = re.compile(r"rank (\d+) of 4: sum 10, expected 10")
LIMIT = 240
PROGRAMS = [os.path.realpath(program(name)) for name in ("ccom-bench", "ccom-doctor", "allreduce_c", "survivors_c")]
BENCH, DOCTOR, ALLREDUCE, SURVIVORS = PROGRAMS
LIBRARIES = re.findall(r"=> (\S*/libccom\.so\S*)", subprocess.run(["ldd", BENCH], capture_output=True, text=True,
                                                                   check=False).stdout)


class Slurm(TestCase):
    def setUp(self):
        self.cluster = self.enterContext(Cluster(2))
        self.folder = self.cluster.folder / self.id().rsplit(".", maxsplit=1)[-1]
        self.folder.mkdir()
        self.secret = self.folder / "secret"
        self.secret.touch(0o600)
        self.secret.write_bytes(os.urandom(32))

    def srun(self, *words, code=0, **variables):
        done = self.cluster.run(["srun", *map(str, words)], seconds=LIMIT, folder=self.folder, **variables)
        self.assertEqual(done.returncode, code, done.stdout)
        return done.stdout

    def srun_on_two(self, *words, code=0, **variables):
        return self.srun("--nodes=2", *words, code=code, CCOM_SECRET_FILE=str(self.secret), **variables)

    def sbatch(self, script, *words, state="COMPLETED", **variables):
        """The job's output. `script` is a file or a text."""
        if not isinstance(script, pathlib.Path):
            (self.folder / "script").write_text(script, encoding="utf-8")
            script = self.folder / "script"
        folders = ":".join(str(pathlib.Path(program).parent) for program in PROGRAMS)
        done = self.cluster.run(["sbatch", "--parsable", "--output=output", str(script), *words], folder=self.folder,
                                 PATH=f"{folders}:{TORCH}:{self.cluster.environment['PATH']}", **variables)
        self.assertEqual(done.returncode, 0, done.stdout)
        job = done.stdout.strip()

        def look():
            seen = self.state_of(job)
            # A job that is requeued would wait for two minutes. slurmd refuses a job's credential that was made in the
            # second in which it has revoked the last one.
            if seen == "PENDING":
                time.sleep(1.1)
                self.cluster.run(["scontrol", "update", f"JobId={job}", "StartTime=now"])
            return seen

        running = ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "REQUEUED")
        try:
            seen = until(look, lambda seen: seen not in running, LIMIT)
        except AssertionError:
            raise AssertionError(f"{self.output()}\n{self.cluster.logs()}") from None
        self.assertEqual(seen, state, self.output())
        return self.output()

    def state_of(self, job):
        shown = self.cluster.run(["scontrol", "show", "job", "--oneliner", job]).stdout
        return re.search(r"JobState=(\w+)", shown).group(1)

    def output(self):
        path = self.folder / "output"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def assert_four_ranks(self, output):
        self.assertEqual(sorted(RIGHT.findall(output)), ["0", "1", "2", "3"], output)

    # Starts

    def interfaces(self):
        """What --mpi may be here."""
        listed = self.cluster.run(["srun", "--mpi=list"]).stdout.split()
        return [name for name in ("none", "pmi2", "pmix") if name in listed]

    def test_tasks_of_a_node_need_nothing(self):
        for mpi in self.interfaces():
            self.assert_four_ranks(self.srun(f"--mpi={mpi}", "--ntasks=4", "--nodes=1", ALLREDUCE))

    def test_tasks_of_two_nodes_meet_at_the_first(self):
        for mpi in self.interfaces():
            self.assert_four_ranks(self.srun_on_two(f"--mpi={mpi}", "--ntasks=4", ALLREDUCE))
        self.assert_four_ranks(self.srun_on_two("--distribution=cyclic", "--ntasks=4", ALLREDUCE))

    def test_tasks_of_another_user(self):
        for path in (BENCH, *LIBRARIES):
            shutil.copy(path, self.folder)
        for path in (self.folder, self.secret):
            shutil.chown(path, "games", "games")
        bench = [str(self.folder / "ccom-bench"), "allreduce", "--sizes", "8,64K", "-n", "2", "-w", "1"]
        for nodes in ("1", "2"):
            words = ["runuser", "-u", "games", "--", "srun", f"--nodes={nodes}", "--ntasks=4", *bench]
            done = self.cluster.run(words, seconds=LIMIT, folder=self.folder, CCOM_SECRET_FILE=str(self.secret),
                                    LD_LIBRARY_PATH=str(self.folder))
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertIn("# wrong values: 0 OK", done.stdout)

    def test_two_nodes_without_a_secret_are_told(self):
        output = self.srun("--nodes=2", "--ntasks=4", ALLREDUCE, code=1)
        self.assertIn("SLURM_STEP_NODELIST: rendezvous address node1", output)
        self.assertIn("CCOM_SECRET_FILE=PATH", output)

    def test_steps_of_a_job_side_by_side(self):
        output = self.sbatch(f"""#!/bin/sh
#SBATCH --nodes=2 --ntasks-per-node=4
export CCOM_SECRET_FILE={self.secret}
for nodes in 1 1 2 2; do srun --exact --nodes=$nodes --ntasks=2 {ALLREDUCE} & done
wait
""")
        self.assertEqual(output.count("of 2: sum 3, expected 3"), 8, output)

    def test_what_is_no_task_of_srun_has_no_rank(self):
        """Slurm sets SLURM_PROCID=0 and SLURM_NTASKS in batch scripts and shells of salloc, too."""
        bench = f"{BENCH} allreduce -np 2 --sizes 8 -n 2 -w 1"
        output = self.sbatch(f"#!/bin/sh\n#SBATCH --ntasks=4\n{ALLREDUCE}\n{bench}\n")
        self.assertIn("this process has no rank: it is Slurm's batch script, not a task of srun", output)
        self.assertIn("2 ranks (processes)", output)
        for shell in (["salloc", "--ntasks=4"], ["srun", "bash"]):
            # Slurm starts $SHELL, which is not set where no one has logged in.
            done = self.cluster.run(["sh", "-c", 'echo "$0" | "$@"', bench, *shell], folder=self.folder,
                                    SHELL="/bin/sh")
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertIn("2 ranks (processes)", done.stdout)

    def test_mpirun_inside_a_job(self):
        """With four tasks on nodes of 3 and 1: srun starts mpirun's daemon on the second node alone."""
        found = [name for name in ("mpirun.openmpi", "mpirun.mpich") if shutil.which(name)]
        if not found:
            self.skipTest("neither Open MPI nor MPICH is installed here")
        for mpirun in found:
            output = self.sbatch(f"""#!/bin/sh
#SBATCH --nodes=2 --ntasks=4 --exclusive
export CCOM_SECRET_FILE={self.secret} OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
{mpirun} -np 4 {ALLREDUCE}
""")
            self.assert_four_ranks(output)

    # Documents and scripts as they stand

    def test_script_for_tools(self):
        output = self.sbatch(SCRIPTS / "slurm-tools.sbatch")
        self.assertIn("8 ranks on 2 hosts", output)
        self.assertIn("node2 (ranks 4-7)", output)
        self.assertIn("# wrong values: 0 OK", output)
        self.assertEqual(list(self.folder.glob(".ccom-secret*")), [], "the secret must not stay")

    def test_script_of_the_tutorial(self):
        (self.folder / "mean").symlink_to(ALLREDUCE)  # it finds libccom from where it was built
        output = self.sbatch(programs.programs("docs/tutorials/slurm.md")["slurm-script"])
        self.assertEqual(len(re.findall("of 8: sum 36, expected 36", output)), 8, output)

    def test_script_for_torchrun(self):
        if not os.access(TORCH / "torchrun", os.X_OK):
            self.skipTest("torchrun is not installed here (scripts/install-torch)")
        program = SOURCES / "examples" / "torch_ddp_digits.py"
        output = self.sbatch(SCRIPTS / "slurm-torchrun.sbatch", "2", str(program), OMP_NUM_THREADS="1")
        self.assertRegex(output, r"4 ranks, ccom: .* test accuracy 0\.9")

    # What goes wrong

    def test_a_killed_task_is_named_by_the_others(self):
        program = [BENCH, "allreduce", "--sizes", "1K", "-n", "10000000"]
        for options, codes in ((["--kill-on-bad-exit=0"], [137]), (["--kill-on-bad-exit=1"], [137, 143])):
            running = self.cluster.start(["srun", "--nodes=2", "--ntasks=4", *options, *program], folder=self.folder,
                                         CCOM_SECRET_FILE=str(self.secret))
            self.kill_task(running, program[0], 2)
            output, _ = running.communicate(timeout=60)
            self.assertIn(running.returncode, codes, output)
            self.assertRegex(output, r"rank 2 on host node[12] died \(pid \d+\)")
            self.assertRegex(output, r"srun: error: node[12]: task 2: Killed")
            if options == ["--kill-on-bad-exit=0"]:  # otherwise Slurm may end them before they have said so
                self.assertEqual(len(set(re.findall(r"ccom-bench: rank (\d)", output))), 3, output)
                self.assertIn("Exited with exit code 4", output)

    def kill_task(self, running, program, rank):
        """Once it is in its loop of calls, which makes it leave sleep."""
        def killed():
            self.assertIsNone(running.poll(), "the job has ended by itself")
            for folder in pathlib.Path("/proc").glob("[0-9]*"):
                try:
                    is_it = os.readlink(folder / "exe") == os.path.realpath(program)
                    used = sum(map(int, (folder / "stat").read_text().rsplit(")", 1)[1].split()[11:13]))
                    variables = (folder / "environ").read_bytes().split(b"\0")
                    if is_it and used > 50 and f"SLURM_PROCID={rank}".encode() in variables:
                        os.kill(int(folder.name), 9)
                        return True
                except OSError:
                    pass  # has ended
            return False

        until(killed)

    def test_survivors_go_on(self):
        output = self.srun_on_two("--kill-on-bad-exit=0", "--ntasks=4", SURVIVORS, code=137)
        self.assertEqual(output.count("3 ranks are left: 0 1 2"), 3, output)
        self.assertEqual(output.count("the last sum is 3"), 3, output)
        self.assertRegex(output, "srun: error: node[12]: task 3: Killed")

    def test_ranks_that_disagree_are_named(self):
        program = f"exec {BENCH} allreduce --sizes $((64 + 64 * (SLURM_PROCID == 3)))"
        output = self.srun_on_two("--ntasks=4", "sh", "-c", program, code=4)
        calls = [f"rank {rank}: allreduce float32 sum count {count} (call 1)" for rank, count in ((0, 16), (3, 32))]
        wrong = re.escape(f"ranks made different calls: {'; '.join(calls)}")
        self.assertEqual(len(re.findall(rf"ccom-bench: rank \d: .*{wrong}", output)), 4, output)

    def test_a_job_that_is_requeued_starts_anew(self):
        output = self.sbatch(rf"""#!/bin/sh
#SBATCH --nodes=1 --ntasks=4 --requeue --open-mode=append
echo "start ${{SLURM_RESTART_COUNT:-0}}"
if [ -z "$SLURM_RESTART_COUNT" ]; then
  srun {BENCH} allreduce --sizes 1K -n 10000000 &
  until squeue --steps --noheader | grep -q "^ *$SLURM_JOB_ID\.0"; do sleep 0.1; done
  scontrol requeue "$SLURM_JOB_ID"
  wait
  sleep 60  # this run of the script is ended; it must not get further
fi
srun {ALLREDUCE}
""")
        self.assertIn("start 1", output)
        self.assert_four_ranks(output.split("start 1")[1])
