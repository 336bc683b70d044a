# SPDX-License-Identifier: Apache-2.0
"""Tensors in ccom.init's calls, beside torch.distributed or without it: by DLPack."""
import pytest
import torch

pytestmark = pytest.mark.ccom
TYPES = [torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64, torch.float16]


@pytest.fixture(scope="module")
def alone():
    import ccom

    with ccom.init_all(1)[0] as world:
        yield world


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_they_are_read_and_written(alone, dtype):
    tensor = torch.ones(2, 3, dtype=dtype)
    out = torch.zeros(6, dtype=dtype)
    assert alone.all_reduce(tensor, inplace=True) is tensor and bool((tensor == 1).all())
    assert alone.all_reduce(tensor, out=out) is out and bool((out == 1).all())


def test_results_are_numpys(alone):
    assert torch.from_dlpack(alone.all_gather(torch.arange(3))).tolist() == [0, 1, 2]


def test_what_is_refused(alone):
    with pytest.raises(ValueError, match="array: is not contiguous"):
        alone.all_reduce(torch.ones(4, 4)[:, 1])
    with pytest.raises(TypeError, match="out: needs elements of float32.*got int64"):
        alone.all_reduce(torch.ones(3), out=torch.ones(3, dtype=torch.int64))
