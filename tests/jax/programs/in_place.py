# SPDX-License-Identifier: Apache-2.0
"""Which copies XLA makes: none of an intermediate value or a donated argument in place, nor of any argument out of
place.
"""

import ccom
import ccom.jax as cj
import jax
import jax.numpy as jnp
import numpy as np

world = ccom.init(timeout=60)
COUNT = 1 << 20


def compiled(in_place, donated, use=lambda x: x):
    function = jax.jit(
        lambda x: cj.allreduce(use(x), comm=world, in_place=in_place), donate_argnums=(0,) if donated else ()
    )
    program = function.lower(jnp.ones(COUNT)).compile()
    memory = program.memory_analysis()
    # Not those within fusions, which copy nothing more than what they write anyway.
    return program, program.as_text().split("ENTRY")[1].count(" copy("), memory.temp_size_in_bytes


assert compiled(in_place=False, donated=False)[1] == 0
program, copies, temporary = compiled(in_place=True, donated=True)
assert copies == 0 and temporary < COUNT, (copies, temporary)
x = jnp.full(COUNT, world.rank + 1.0)
address = x.unsafe_buffer_pointer()
y = program(x)
assert x.is_deleted() and y.unsafe_buffer_pointer() == address
np.testing.assert_array_equal(y, np.full(COUNT, world.size * (world.size + 1) / 2))
_, copies, in_place = compiled(in_place=True, donated=False, use=jnp.sin)
_, copies_too, beside = compiled(in_place=False, donated=False, use=jnp.sin)
assert copies == copies_too == 0 and beside - in_place >= 4 * COUNT, (copies, copies_too, beside, in_place)
assert compiled(in_place=True, donated=False)[1] == 1  # an argument that must stay as it is
z = jnp.ones(8)
np.testing.assert_array_equal(cj.allreduce(z, comm=world, in_place=True), np.full(8, world.size))
np.testing.assert_array_equal(z, np.ones(8))
print("all right", world.rank)
