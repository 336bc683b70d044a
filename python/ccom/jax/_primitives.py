# SPDX-License-Identifier: Apache-2.0
"""The primitives of ccom.jax: what JAX's transformations know of ccom's calls.

Each takes some arrays and returns as many, element by element the same call. All have one ordered effect: JAX threads a
token through them, inside a compiled function and from one to the next, so that XLA runs them one after another in the
order of the program, which is the same on all ranks; and removes, repeats or moves none.
"""

import functools

import jax
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

try:
    from jax.ffi import abstract_token
except ImportError:
    try:
        from jax._src.core import abstract_token
    except ImportError:
        from jax.core import abstract_token
from jax._src import effects


class Order(effects.Effect):
    __str__ = lambda self: "ccom"


order = Order()
for kind in (
    "ordered_effects",
    "lowerable_effects",
    "control_flow_allowed_effects",
    "custom_derivatives_allowed_effects",
    "remat_allowed_effects",
):
    getattr(effects, kind).add_type(Order)

OPS = {"sum": 0, "prod": 1, "max": 2, "min": 3, "avg": 4, "band": 8, "bor": 9, "bxor": 10, "land": 11, "lor": 12}
NOBODY = -1
_type_of = getattr(jax, "typeof", None) or jax.core.get_aval  # jax.typeof: 0.6 and later


@functools.cache
def _jitted(primitive, params):
    return jax.jit(lambda *arrays: primitive.bind(*arrays, **dict(params)))


def _lower(handler, ctx, *arrays, **params):
    ctx_with_token = ctx.replace(avals_in=(*ctx.avals_in, abstract_token), avals_out=(*ctx.avals_out, abstract_token))
    aliases = {i: i for i in range(len(arrays))} if params.get("in_place") else None
    rule = jax.ffi.ffi_lowering(f"ccom_{handler}", has_side_effect=True, operand_output_aliases=aliases)
    *results, token = rule(
        ctx_with_token,
        *arrays,
        ctx.tokens_in.get(order),
        comm=np.int64(params["comm"]),
        op=np.int64(OPS[params.get("op", "sum")]),
        peer=np.int64(params.get("peer", NOBODY)),
        source=np.int64(params.get("source", NOBODY)),
        pairs=np.int64(max(len(ctx.avals_in), len(ctx.avals_out))),
        place=params["place"],
    )
    ctx.set_tokens_out(mlir.TokenSet({order: token}))
    return results


def _make(name, handler, shape_of=None, batch_of=None):
    """A primitive of one result for each array.

    shape_of(x, params): the result's shape. batch_of(d) of vmap: where the batch has to be before the call, and where
    it is afterwards, if it comes in dimension d.
    """
    primitive = Primitive(f"ccom_{name}")
    primitive.multiple_results = True
    primitive.def_impl(lambda *arrays, **params: _jitted(primitive, tuple(params.items()))(*arrays))
    mlir.register_lowering(primitive, functools.partial(_lower, handler), platform="cpu")
    if shape_of is None:
        return primitive
    primitive.def_effectful_abstract_eval(
        lambda *avals, **params: ([jax.core.ShapedArray(shape_of(x, params), x.dtype) for x in avals], {order})
    )

    def batch(arrays, dims, **params):
        arrays, after = list(arrays), list(dims)
        for i, d in enumerate(dims):
            if d is not None:
                before, after[i] = batch_of(d)
                arrays[i] = jax.numpy.moveaxis(arrays[i], d, before)
        return primitive.bind(*arrays, **params), after

    batching.primitive_batchers[primitive] = batch
    return primitive


def _jvp(primitive, arrays, tangents, **params):
    op = params.get("op", "sum")
    if op not in ("sum", "avg"):
        raise NotImplementedError(f'{primitive.name} with op="{op}" has no derivative here: only "sum" and "avg" have')
    results = primitive.bind(*arrays, **params)
    nonzero = [i for i, t in enumerate(tangents) if type(t) is not ad.Zero]
    after = [ad.Zero(_type_of(y).to_tangent_aval()) for y in results]
    if nonzero:
        for i, t in zip(nonzero, primitive.bind(*[tangents[i] for i in nonzero], **params)):
            after[i] = t
    return results, after


def _make_linear(primitive, transpose):
    """transpose(cotangents, params): those of as many arrays, made by the transposed call."""

    def rule(cotangents, *arrays, **params):
        linear = [i for i, x in enumerate(arrays) if ad.is_undefined_primal(x)]
        nonzero = [i for i in linear if type(cotangents[i]) is not ad.Zero]
        results = [ad.Zero(x.aval.to_tangent_aval()) if i in linear else None for i, x in enumerate(arrays)]
        if nonzero:
            for i, result in zip(nonzero, transpose([cotangents[i] for i in nonzero], params)):
                results[i] = result
        return results

    ad.primitive_jvps[primitive] = functools.partial(_jvp, primitive)
    ad.primitive_transposes[primitive] = rule


def _has_no_derivative(primitive, instead):
    def rule(arrays, tangents, **params):
        if all(type(t) is ad.Zero for t in tangents):
            return primitive.bind(*arrays, **params), []
        raise NotImplementedError(f"{primitive.name} has no derivative: {instead}")

    ad.primitive_jvps[primitive] = rule


def _same(x, params):
    return x.shape


def _stays(d):
    return d, d


all_reduce_p = _make("all_reduce", "all_reduce", _same, _stays)
broadcast_p = _make("broadcast", "broadcast", _same, _stays)
reduce_p = _make("reduce", "reduce", _same, _stays)
exchange_p = _make("exchange", "exchange", _same, _stays)
all_gather_p = _make("all_gather", "all_gather", lambda x, params: (params["parts"], *x.shape), lambda d: (d, d + 1))
gather_p = _make("gather", "gather", lambda x, params: (params["parts"], *x.shape), lambda d: (d, d + 1))
reduce_scatter_p = _make("reduce_scatter", "reduce_scatter", lambda x, params: x.shape[1:], lambda d: (1, 0))
scatter_p = _make("scatter", "scatter", lambda x, params: x.shape[1:], lambda d: (1, 0))
all_to_all_p = _make("all_to_all", "all_to_all", _same, lambda d: (1, 1))

send_p = _make("send", "exchange")
send_p.def_effectful_abstract_eval(lambda *avals, **params: ([], {order}))
receive_p = _make("receive", "exchange")
receive_p.def_effectful_abstract_eval(lambda *, shape, dtype, **params: ([jax.core.ShapedArray(shape, dtype)], {order}))
barrier_p = _make("barrier", "barrier")
barrier_p.def_effectful_abstract_eval(lambda **params: ([], {order}))

# The identity, whose transpose is the sum over ranks, as the sum's is the identity.
vary_p = Primitive("ccom_vary")
vary_p.multiple_results = True
vary_p.def_impl(lambda *arrays, **params: list(arrays))
vary_p.def_abstract_eval(lambda *avals, **params: [jax.core.ShapedArray(x.shape, x.dtype) for x in avals])
mlir.register_lowering(vary_p, lambda ctx, *arrays, **params: list(arrays))
batching.primitive_batchers[vary_p] = lambda arrays, dims, **params: (vary_p.bind(*arrays, **params), dims)


def _without(params, *names):
    return {name: value for name, value in params.items() if name not in names}


def _scaled(arrays, params):
    return arrays if params["op"] == "sum" else [x / params["size"] for x in arrays]


def _transposed_all_reduce(cotangents, params):
    return _scaled(vary_p.bind(*cotangents, **{**params, "op": "sum"}), params)


def _transposed_all_gather(cotangents, params):
    return reduce_scatter_p.bind(*cotangents, **{**_without(params, "parts"), "op": "sum"})


def _transposed_reduce_scatter(cotangents, params):
    return all_gather_p.bind(*_scaled(cotangents, params), **_without(params, "op"), parts=params["size"])


def _transposed_broadcast(cotangents, params):
    return reduce_p.bind(*cotangents, **_without(params, "in_place"), op="sum")


def _transposed_reduce(cotangents, params):
    return broadcast_p.bind(*_scaled(cotangents, params), **_without(params, "op"), in_place=False)


def _transposed_gather(cotangents, params):
    return scatter_p.bind(*cotangents, **params)


def _transposed_scatter(cotangents, params):
    return gather_p.bind(*cotangents, **params)


def _transposed_all_to_all(cotangents, params):
    return all_to_all_p.bind(*cotangents, **params)


def _transposed_exchange(cotangents, params):
    return exchange_p.bind(*cotangents, **{**params, "peer": params["source"], "source": params["peer"]})


def _transposed_vary(cotangents, params):
    return all_reduce_p.bind(*cotangents, **params)


_make_linear(all_reduce_p, _transposed_all_reduce)
_make_linear(vary_p, _transposed_vary)
_make_linear(all_gather_p, _transposed_all_gather)
_make_linear(reduce_scatter_p, _transposed_reduce_scatter)
_make_linear(broadcast_p, _transposed_broadcast)
_make_linear(reduce_p, _transposed_reduce)
_make_linear(gather_p, _transposed_gather)
_make_linear(scatter_p, _transposed_scatter)
_make_linear(all_to_all_p, _transposed_all_to_all)
_make_linear(exchange_p, _transposed_exchange)
_has_no_derivative(send_p, "send_recv and ppermute have one")
