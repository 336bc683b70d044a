# SPDX-License-Identifier: Apache-2.0
"""What somebody who connects to torch's store finds there: stored.py. Rank 0 says how many values hold an id of ccom's.
"""
import json
import os

import torch
import torch.distributed as dist


def values():
    """Of all keys, as a stranger reads them."""
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), is_master=False)
    found = []
    for key in store.list_keys():
        key = key.decode() if isinstance(key, bytes) else key
        found.append(store.get(key.removeprefix("/")))
    return found


def main():
    dist.init_process_group("ccom")
    group = dist.new_group()
    for used in (None, group):
        tensor = torch.ones(10)
        dist.all_reduce(tensor, group=used)
    dist.barrier()
    if dist.get_rank() == 0:
        read = values()
        print(json.dumps({"values": len(read), "ids": sum(b"ccid" in value for value in read)}))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
