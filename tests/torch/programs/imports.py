# SPDX-License-Identifier: Apache-2.0
"""Imports libraries before or after torch and before or after the group is made, uses them, and runs a collective.

    imports.py protobuf torch group grpc numpy
"""
import sys
import tempfile


def use_protobuf():
    from google.protobuf import descriptor_pb2, struct_pb2

    message = struct_pb2.Struct()
    message.update({"ranks": 4, "names": ["a", "b"]})
    again = struct_pb2.Struct.FromString(message.SerializeToString())
    assert again == message and again["ranks"] == 4 and descriptor_pb2.FileDescriptorProto(name="x").name == "x"


def use_grpc():
    from concurrent import futures

    import grpc

    server = grpc.server(futures.ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        grpc.channel_ready_future(channel).result(timeout=20)
    server.stop(None)


def use_numpy():
    import numpy

    matrix = numpy.arange(250_000.0).reshape(500, 500)
    assert numpy.isfinite(numpy.linalg.norm(matrix @ matrix))
    numpy.linalg.svd(numpy.ones((4, 4)))


def use_tensorboard():
    from tensorboard.compat.proto.event_pb2 import Event
    from torch.utils.tensorboard import SummaryWriter

    assert Event.FromString(Event(step=3).SerializeToString()).step == 3
    with tempfile.TemporaryDirectory() as folder:
        with SummaryWriter(folder) as writer:
            writer.add_scalar("x", 1.0, 0)


def use_torch():
    import torch

    matrix = torch.rand(300, 300)
    assert torch.isfinite(torch.linalg.inv(matrix @ matrix.t() + 300 * torch.eye(300))).all()


def use_group():
    import torch.distributed as dist

    dist.init_process_group("ccom")


USES = {name.partition("_")[2]: use for name, use in list(globals().items()) if name.startswith("use_")}


def main():
    for name in sys.argv[1:]:
        USES[name]()
    import torch
    import torch.distributed as dist

    for _ in range(2):
        tensor = torch.ones(100_000)
        dist.all_reduce(tensor)
        assert tensor[-1] == dist.get_world_size()
        for name in sys.argv[1:]:
            if name != "group":
                USES[name]()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
