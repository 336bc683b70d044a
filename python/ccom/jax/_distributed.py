# SPDX-License-Identifier: Apache-2.0
"""ccom below jax.distributed: what jax.lax.psum and its like do between processes, and what XLA adds for sharded
arrays.
"""

from __future__ import annotations

import ctypes

import jax
from jax._src import distributed, xla_bridge

import ccom
from ccom.jax import _trampoline

_KEY = "ccom/jax/unique_id"
_world = None


def use_in_jax_distributed(comm: ccom.Communicator | None = None) -> ccom.Communicator:
    """Makes ccom the collectives of jax.distributed on CPUs, from here on. Returns the communicator.

        jax.distributed.initialize(coordinator, processes, rank)
        ccom.jax.use_in_jax_distributed()           # before the first use of a device

    comm: a communicator of all processes, a part of which is used; else one is made, whose secret passes through the
    service of jax.distributed, which forgets it once all have it. Collective. docs/doors/jax.md says which types and
    shapes of processes jaxlib allows.
    """
    global _world
    if not _trampoline.is_known:
        raise RuntimeError(
            "use_in_jax_distributed: jaxlib has been loaded without knowing of ccom: import ccom.jax before jax, "
            f"or set MPITRAMPOLINE_LIB={_trampoline.path} for the program"
        )
    state = distributed.global_state
    if state.client is None:
        raise RuntimeError("use_in_jax_distributed: call jax.distributed.initialize before")
    if xla_bridge.backends_are_initialized():
        raise RuntimeError(
            "use_in_jax_distributed: JAX has begun to use its devices; call it right after jax.distributed.initialize"
        )
    if comm is None:
        comm = _started(state)
    elif comm.size != state.num_processes:
        raise ValueError(f"comm: has {comm.size} ranks, needs all of jax.distributed's {state.num_processes} processes")
    else:
        comm = comm.split(0)
    library = _trampoline.library
    library.ccom_mpi_set_world.argtypes = [ctypes.c_void_p]
    library.ccom_mpi_set_world.restype = None
    library.ccom_mpi_set_world(comm.handle)
    comm._before_close(lambda: library.ccom_mpi_set_world(None))
    _world = comm  # as long as XLA may use it
    jax.config.update("jax_cpu_collectives_implementation", "mpi")
    return comm


def _started(state):
    size = state.num_processes
    if state.process_id > 0:
        unique_id = bytes.fromhex(state.client.blocking_key_value_get(_KEY, 60_000))
        return ccom.init(rank=state.process_id, size=size, unique_id=unique_id)
    unique_id = ccom.unique_id()
    state.client.key_value_set(_KEY, unique_id.hex())
    try:
        return ccom.init(rank=0, size=size, unique_id=unique_id)
    finally:  # it holds the secret, and anybody who reaches the service may ask for it
        state.client.key_value_delete(_KEY)
