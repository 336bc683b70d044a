# SPDX-License-Identifier: Apache-2.0
"""What became of a case."""

import dataclasses

from choice import Case


@dataclasses.dataclass(frozen=True)
class Result:
    case: Case
    outcome: str  # passed, failed, skipped
    seconds: float
    reason: str = ""
