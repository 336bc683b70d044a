# SPDX-License-Identifier: Apache-2.0
"""Ranks that a launcher has started find each other and get the right sum, with no variable of ccom's but a secret.
Launchers that are not installed here (Kubernetes, Kubeflow Trainer, SageMaker) are played: processes get the variables
that their documentation names, on two hosts of which both are this machine.
"""
import os
import shutil

from harness.case import SOURCES, TestCase, free_port, program
from harness.processes import PATIENCE, Job

ALLREDUCE = program("allreduce_c")
INIT = {"CCOM_INIT_TIMEOUT_MS": "40000"}
ON_LOOPBACK = {"CCOM_SOCKET_IFNAME": "lo", **INIT}


class Launchers(TestCase):
    def setUp(self):
        self.job = self.enterContext(Job())

    def computes(self, seconds=PATIENCE):
        """Lines of several ranks may have come as one."""
        output = "".join(end.output for end in self.job.succeed(seconds))
        self.assertEqual(output.count("of 4: sum 10, expected 10"), 4, output)

    def launches(self, name, programs, *options, seconds=PATIENCE):
        """By the first of the programs that can be run."""
        found = [path for path in map(shutil.which, map(str, programs)) if path]
        if not found:
            self.skipTest(f"{name} is not installed here")
        self.job.start([found[0], *options, ALLREDUCE], ON_LOOPBACK)
        self.computes(seconds)

    def plays(self, variables, of_rank):
        for rank in range(4):
            host, place = divmod(rank, 2)
            self.job.start([ALLREDUCE], {**variables, "CCOM_LOCAL_RANK": str(place), **of_rank(host)})
        self.computes()

    def test_openmpi(self):
        as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        self.launches("Open MPI", ["mpirun.openmpi"], *as_root, "--oversubscribe", "-np", "4")

    def test_mpich(self):
        self.launches("MPICH", ["mpirun.mpich"], "-np", "4")

    def test_intelmpi(self):
        places = [os.environ.get("CCOM_TEST_INTELMPI", "none"), SOURCES / "build/peers/intelmpi/bin/mpiexec.hydra"]
        self.launches("Intel MPI", places, "-np", "4")

    def test_torchrun(self):
        places = [SOURCES / "build/torch/bin/torchrun", os.environ.get("CCOM_TEST_TORCHRUN", "torchrun")]
        self.launches("torchrun", places, "--standalone", "--nproc-per-node", "4", "--no-python", seconds=100)

    def test_kubernetes(self):
        """The manifest names the rendezvous address; here a file does."""
        url = f"file://{self.job.folder}/id"
        self.plays({**ON_LOOPBACK, "CCOM_NRANKS": "4", "CCOM_LOCAL_NRANKS": "2", "CCOM_URL": url},
                   lambda host: {"JOB_COMPLETION_INDEX": str(host), "CCOM_HOSTID": f"pod{host}"})

    def test_kubeflow(self):
        of_job = {"PET_NNODES": "2", "PET_NPROC_PER_NODE": "2", "PET_MASTER_ADDR": "localhost",
                  "PET_MASTER_PORT": str(free_port())}
        self.plays({**ON_LOOPBACK, **of_job}, lambda host: {"PET_NODE_RANK": str(host), "CCOM_HOSTID": f"node{host}"})

    def test_sagemaker(self):
        """localhost stands for the first container, whose name leads to it."""
        of_job = {"SM_HOSTS": '["localhost","algo-2"]', "SM_NETWORK_INTERFACE_NAME": "lo", "CCOM_LOCAL_NRANKS": "2"}
        names = ["localhost", "algo-2"]
        self.plays({**INIT, **of_job, "CCOM_URL": f"file://{self.job.folder}/id"},
                   lambda host: {"SM_CURRENT_HOST": names[host], "CCOM_HOSTID": names[host]})
