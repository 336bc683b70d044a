# SPDX-License-Identifier: Apache-2.0
"""The agent of torchrun, as a file."""
from torch.distributed.run import main

if __name__ == "__main__":
    main()
