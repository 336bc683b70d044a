# SPDX-License-Identifier: Apache-2.0
"""Debian's Slurm with munge as a small cluster on this machine: a host for slurmctld and for those who submit, and
nodes node1, node2 ... with a slurmd each. Hosts are network, mount and UTS namespaces (tests/harness/namespaces.py),
so ccom takes them for different machines and nothing is set for it. A key, sockets, settings and state of its own
are in a temporary folder. To be used by a process that in_own_namespaces() has started: whatever the daemons leave
behind ends with it.

    with Cluster(2) as cluster:
        done = cluster.run(["srun", "-n", "4", "hostname"])"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

from harness.namespaces import Hosts, Unavailable
from harness.processes import until

PROGRAMS = ["munged", "slurmctld", "slurmd", "srun", "sbatch", "scontrol", "unshare", "ip"]
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

CONFIGURATION = """
ClusterName=test
SlurmctldHost=login
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0
SlurmdParameters=config_overrides
MpiDefault=none
TmpFS={folder}/tmp
ReturnToService=2
KillWait=2
LaunchParameters=use_interactive_step
JobRequeue=1
NodeName=node[1-{nodes}] CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=60 State=UP
"""


def in_own_namespaces():
    """Starts this program again, in namespaces in which all processes end with it. Returns in there."""
    absent = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
    if os.geteuid() != 0:
        raise Unavailable("not root")
    if absent:
        raise Unavailable(f"{', '.join(absent)} not installed (scripts/install-dependencies --slurm)")
    if os.environ.pop("CCOM_OWN_NAMESPACES", None):
        # Files of named network namespaces, and those of daemons that insist on /run.
        subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
        return
    command = ["unshare", "--mount", "--net", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc"]
    if subprocess.run([*command, "true"], check=False, capture_output=True).returncode != 0:
        raise Unavailable("namespaces cannot be made here")
    environment = {**os.environ, "CCOM_OWN_NAMESPACES": "1"}
    done = subprocess.run([*command, sys.executable, *sys.argv], check=False, env=environment)
    sys.exit(done.returncode if done.returncode >= 0 else 1)


class Cluster:
    def __init__(self, nodes, cpus=8):
        self.nodes = [f"node{number + 1}" for number in range(nodes)]
        self.cpus, self.hosts, self.daemons = cpus, Hosts(nodes + 1), []
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="slurm-"))
        others = ("CCOM_", "SLURM_", "NCCL_", "GLOO_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
        self.environment = {**kept, "PATH": PATH, "SLURM_CONF": str(self.folder / "slurm.conf"), "LC_ALL": "C.UTF-8"}

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self):
        names = {"login": 0, **{name: number + 1 for number, name in enumerate(self.nodes)}}
        table = "".join(f"{self.hosts.address(host)} {name}\n" for name, host in names.items())
        (self.folder / "hosts").write_text("127.0.0.1 localhost\n" + table)
        subprocess.run(["mount", "--bind", str(self.folder / "hosts"), "/etc/hosts"], check=True)
        self.hosts.__enter__()  # their mounts are those that are there now
        settings = CONFIGURATION.format(folder=self.folder, nodes=len(self.nodes), cpus=self.cpus)
        (self.folder / "slurm.conf").write_text(settings)
        # The plug-in that looks for nothing as long as it is not used.
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        for name in ("munge", "state", "tmp", *(f"spool-{node}" for node in self.nodes)):
            (self.folder / name).mkdir()
        self.folder.chmod(0o755)
        (self.folder / "munge").chmod(0o755)
        (self.folder / "key").touch(0o600)
        (self.folder / "key").write_bytes(os.urandom(128))
        files = {"key-file": "key", "socket": "munge/socket", "pid-file": "munge.pid", "log-file": "munge.log",
                 "seed-file": "munge.seed"}
        options = [f"--{option}={self.folder}/{name}" for option, name in files.items()]
        self._daemon("login", 0, ["munged", "--foreground", "--force", *options])
        until((self.folder / "munge" / "socket").exists)
        self._daemon("login", 0, ["slurmctld", "-D"])
        for number, name in enumerate(self.nodes):
            self._daemon(name, number + 1, ["slurmd", "-D"])
        until(self._is_idle)

    def _daemon(self, name, host, command):
        """On a host with a name, mounts and shared memory of its own; it sees the processes of the others."""
        start = f'hostname "$0" && mount -t tmpfs none {self.folder}/tmp && exec "$@"'
        here = ["unshare", "--mount", "--uts", "--ipc", "sh", "-c", start, name]
        with open(self.folder / f"{command[0]}-{name}.out", "w", encoding="utf-8") as log:
            self.daemons.append(subprocess.Popen(
                [*self.hosts.enter(host), *here, *command], env=self.environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True))

    def _is_idle(self):
        ended = [daemon for daemon in self.daemons if daemon.poll() is not None]
        if ended:
            raise RuntimeError(f"{ended[0].args[-2:]} has ended\n{self.logs()}")
        return self.run(["sinfo", "-h", "-o", "%T %D"], 20).stdout.split() == ["idle", str(len(self.nodes))]

    def log(self, name):
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def logs(self):
        paths = [*sorted(self.folder.glob("*.log")), *sorted(self.folder.glob("*.out"))]
        return "\n".join(f"== {path.name}\n{path.read_text(errors='replace')[-2000:]}" for path in paths)

    def start(self, command, folder="/", **variables):
        """On the login host."""
        return subprocess.Popen([*self.hosts.enter(0, folder), *command], text=True, stdin=subprocess.DEVNULL,
                                env={**self.environment, **variables}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self, command, seconds=60, folder="/", **variables):
        running = self.start(command, folder, **variables)
        try:
            output, _ = running.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            running.kill()
            output, _ = running.communicate()
            raise AssertionError(f"{command} did not end within {seconds} s:\n{output}\n{self.logs()}") from None
        return subprocess.CompletedProcess(command, running.returncode, output)

    def __exit__(self, *_):
        for daemon in reversed(self.daemons):
            if daemon.poll() is None:
                daemon.send_signal(signal.SIGTERM)
        for daemon in reversed(self.daemons):
            try:
                daemon.wait(5)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self.hosts.__exit__()
        subprocess.run(["umount", "/etc/hosts"], check=False, capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)
