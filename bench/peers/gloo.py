# SPDX-License-Identifier: Apache-2.0
"""Gloo through torch.distributed as bench/compare measures it: one thread per rank, TCP on the loopback interface.

Gloo reduces in place only: allreduce and reduce copy the input first, within the measured time. Usage: gloo.py
LIBMEASURE, the shared library made of measure.c and sync.c.
"""
import ctypes
import datetime
import os
import sys
import warnings

import torch
import torch.distributed as dist

FLOATS = ctypes.POINTER(ctypes.c_float)
CALL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
ALLREDUCE, ALLGATHER, REDUCE_SCATTER, BROADCAST, ALLTOALL, REDUCE, GATHER, SCATTER = range(8)


class Peer(ctypes.Structure):
    _fields_ = [("version", ctypes.c_char_p), ("allocate", ctypes.c_void_p), ("release", ctypes.c_void_p),
                ("call", CALL)]


def tensor(address, count):
    return torch.frombuffer((ctypes.c_float * count).from_address(address), dtype=torch.float32)


class Calls:
    """The tensors of one pair of buffers are made once, not per call."""

    def __init__(self, ranks):
        self.ranks = ranks
        self.key = None
        self.send = self.recv = self.blocks = None

    def __call__(self, collective, send, recv, count):
        if self.key != (collective, send, recv, count):
            self.key = (collective, send, recv, count)
            self.send = tensor(send, count * (self.ranks if collective in (REDUCE_SCATTER, ALLTOALL, SCATTER) else 1))
            self.recv = tensor(recv, count * (self.ranks if collective in (ALLGATHER, ALLTOALL, GATHER) else 1))
            self.blocks = list((self.recv if collective == GATHER else self.send).split(count))
        try:
            if collective == ALLREDUCE:
                self.recv.copy_(self.send)
                dist.all_reduce(self.recv)
            elif collective == ALLGATHER:
                dist.all_gather_into_tensor(self.recv, self.send)
            elif collective == REDUCE_SCATTER:
                dist.reduce_scatter_tensor(self.recv, self.send)
            elif collective == BROADCAST:
                dist.broadcast(self.recv, 0)
            elif collective == REDUCE:
                self.recv.copy_(self.send)
                dist.reduce(self.recv, 0)
            elif collective == GATHER:
                dist.gather(self.send, self.blocks if dist.get_rank() == 0 else None)
            elif collective == SCATTER:
                dist.scatter(self.recv, self.blocks if dist.get_rank() == 0 else None)
            else:
                dist.all_to_all_single(self.recv, self.send)
        except RuntimeError as error:
            print(error, file=sys.stderr)
            return 1
        return 0


def main():
    warnings.simplefilter("ignore")  # names of functions change with versions of torch
    library = ctypes.CDLL(sys.argv[1])
    rank, ranks = int(os.environ["COMPARE_RANK"]), int(os.environ["COMPARE_RANKS"])
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{os.environ['COMPARE_SYNC']}.torch", rank=rank,
                            world_size=ranks, timeout=datetime.timedelta(seconds=60))
    peer = Peer(f"torch {torch.__version__}".encode(), None, None, CALL(Calls(ranks)))
    outcome = library.measure_run(ctypes.byref(peer), rank, ranks)
    dist.destroy_process_group()
    return outcome


if __name__ == "__main__":
    sys.exit(main())
