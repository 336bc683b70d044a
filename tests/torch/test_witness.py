# SPDX-License-Identifier: Apache-2.0
"""ccom.torch.witness: a replica that has diverged is named to all ranks."""
import launch
import pytest

pytestmark = pytest.mark.ccom


@pytest.mark.parametrize("hosts", [1, 2])
def test_a_replica_that_has_diverged_is_named(hosts):
    finished = launch.ranks("diverged.py", count=4, per_rank=lambda rank: {"CCOM_HOSTID": f"host-{rank % hosts}"})
    told = {entry["rank"]: entry for entry in finished.told}
    assert sorted(told) == [0, 1, 2, 3], finished.output
    for entry in told.values():
        assert 5 <= entry["step"] < 399, entry
        assert "those of rank 1 from those of the 3 other ranks" in entry["told"], entry
        assert "CCOM-E069" in entry["told"], entry
