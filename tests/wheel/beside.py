# SPDX-License-Identifier: Apache-2.0
"""beside.py before|after: one of two ranks, that uses grpcio and protobuf of the package index before ccom, or after
it.

The group meets through the gRPC that is inside libccom. Both sides are used again while the other one is loaded.
"""
import os
import sys


def others():
    from concurrent import futures

    import google.protobuf.struct_pb2 as struct
    import grpc

    message = struct.Struct()
    message.update({"rank": os.environ["RANK"]})
    assert struct.Struct.FromString(message.SerializeToString()) == message

    handler = grpc.method_handlers_generic_handler(
        "ccom.Test", {"Echo": grpc.unary_unary_rpc_method_handler(lambda request, context: request,
                                                                 struct.Struct.FromString,
                                                                  struct.Struct.SerializeToString)})
    server = grpc.server(futures.ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers((handler,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        echo = channel.unary_unary("/ccom.Test/Echo", struct.Struct.SerializeToString, struct.Struct.FromString)
        assert echo(message, timeout=20) == message
    server.stop(None)


def ccom():
    import torch
    import torch.distributed as dist

    if not dist.is_initialized():
        dist.init_process_group("ccom")
    value = torch.full((1000,), float(dist.get_rank() + 1))
    dist.all_reduce(value)
    assert value.tolist() == [3.0] * 1000


first, second = (others, ccom) if sys.argv[1] == "before" else (ccom, others)
first()
second()
first()
import torch.distributed  # noqa: E402

torch.distributed.destroy_process_group()
with open("/proc/self/maps") as maps:
    loaded = {line.split()[-1] for line in maps if "/" in line}
for name in ("libgrpc", "libabsl", "libprotobuf.so"):
    assert not [path for path in loaded if os.path.basename(path).startswith(name)], f"{name} of the host is loaded"
assert any("/ccom/lib/libccom.so" in path for path in loaded), "libccom is not the package's"
os.write(1, f"rank {os.environ['RANK']} {sys.argv[1]} fine\n".encode())  # at once: ranks share the output
