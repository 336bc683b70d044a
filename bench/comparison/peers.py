# SPDX-License-Identifier: Apache-2.0
"""The libraries that bench/compare knows: how to find, build and start each, and the settings in which it is tried.

A peer is looked for in the system (Open MPI, MPICH) and in the virtual environments that bench/install-peers makes.
A configuration is a peer with one of its settings: "openmpi" is its default, "openmpi:ring" another.
"""
import dataclasses
import os
import shlex
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.join(HERE, "..", "peers")
INCLUDE = os.path.join(HERE, "..", "..", "include")
ALL = ("allreduce", "allgather", "reduce_scatter")


class Unavailable(Exception):
    """The peer is not installed, or does not build; the text says which."""


@dataclasses.dataclass(frozen=True)
class Setting:
    name: str = ""
    environment: dict = dataclasses.field(default_factory=dict)
    collectives: tuple = ALL


@dataclasses.dataclass(frozen=True)
class Peer:
    """Built and ready. The command is started once per rank, or once with {ranks} replaced if it contains that."""
    name: str
    command: tuple
    environment: dict
    settings: tuple = (Setting(),)
    has_threads: bool = False  # its own, beside the ranks: such ranks are not pinned and sleep at meetings

    def commands(self, ranks):
        if any("{ranks}" in part for part in self.command):
            return [[part.replace("{ranks}", str(ranks)) for part in self.command]]
        return [list(self.command)] * ranks


def compiled(compiler, sources, flags, output):
    """Compiles programs of bench/peers, each with the measuring part. CFLAGS is respected."""
    command = [compiler, *shlex.split(os.environ.get("CFLAGS", "")), "-O2", "-o", output]
    command += [os.path.join(SOURCES, source) for source in sources] + flags
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if result.returncode != 0:
        lines = [line for line in result.stderr.splitlines() if "error" in line] or result.stderr.splitlines()[-1:]
        raise Unavailable(f"does not compile: {lines[0] if lines else result.returncode}")
    return output


def ccom(build, programs, buffers):
    library = os.path.join(os.path.abspath(build), "src", "api")
    if not os.path.exists(os.path.join(library, "libccom.so")):
        raise Unavailable(f"{library}/libccom.so is not there: build ccom, or give --build")
    program = compiled("cc", ["ccom.c", "measure.c"],
                       ["-I", INCLUDE, "-L", library, "-lccom", f"-Wl,-rpath,{library}"], os.path.join(programs, "ccom"))
    return Peer("ccom" if buffers == "ordinary" else f"ccom-{buffers}", (program,), {"COMPARE_BUFFERS": buffers})


def mca(**parameters):
    return {f"OMPI_MCA_{name}": str(value) for name, value in parameters.items()}


OPEN_MPI_SETTINGS = (
    Setting(),
    Setting("recursive-doubling", mca(coll_tuned_use_dynamic_rules=1, coll_tuned_allreduce_algorithm=3), ("allreduce",)),
    Setting("segmented-ring", mca(coll_tuned_use_dynamic_rules=1, coll_tuned_allreduce_algorithm=5,
                                  coll_tuned_allreduce_algorithm_segmentsize=262144), ("allreduce",)),
    Setting("rabenseifner", mca(coll_tuned_use_dynamic_rules=1, coll_tuned_allreduce_algorithm=6), ("allreduce",)),
    Setting("ring", mca(coll_tuned_use_dynamic_rules=1, coll_tuned_allgather_algorithm=4), ("allgather",)),
    Setting("counts", {"COMPARE_MPI_COUNTS": "1"}, ("reduce_scatter",)),
    Setting("counts-ring", {"COMPARE_MPI_COUNTS": "1",
                            **mca(coll_tuned_use_dynamic_rules=1, coll_tuned_reduce_scatter_algorithm=3)},
            ("reduce_scatter",)),
)
COUNTS = Setting("counts", {"COMPARE_MPI_COUNTS": "1"}, ("reduce_scatter",))


def mpi(name, compiler, launcher, programs, environment=None, settings=(Setting(), COUNTS)):
    for tool in (compiler, launcher[0]):
        if shutil.which(tool) is None:
            raise Unavailable(f"{tool} is not installed")
    program = compiled(compiler, ["mpi.c", "measure.c"], [], os.path.join(programs, name))
    return Peer(name, (*launcher, program), environment or {}, settings)


def find(name, build, peers_dir, programs):
    """The peer of that name, or Unavailable."""
    inside = lambda *path: os.path.join(os.path.abspath(peers_dir), *path)
    if name in ("ccom", "ccom-mapped"):
        return ccom(build, programs, "ordinary" if name == "ccom" else "mapped")
    if name == "openmpi":
        return mpi(name, "mpicc.openmpi", ("mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
                                           "-n", "{ranks}"), programs, settings=OPEN_MPI_SETTINGS)
    if name == "mpich":
        return mpi(name, "mpicc.mpich", ("mpirun.mpich", "-n", "{ranks}"), programs)
    raise Unavailable("no such peer is known")


NAMES = ("openmpi", "mpich")


def extra(text):
    """NAME=CMD: any program that obeys the environment of peers/measure.h."""
    name, _, command = text.partition("=")
    if not name or not command:
        raise Unavailable(f"--extra {text}: expected NAME=CMD")
    return Peer(name, tuple(shlex.split(command)), {})
