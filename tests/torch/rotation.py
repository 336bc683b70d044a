# SPDX-License-Identifier: Apache-2.0
"""Long matrices of tests, divided over the days: each day runs a part, CCOM_TEST_LONG=1 all of them."""
import datetime
import os

LONG = os.environ.get("CCOM_TEST_LONG", "0") not in ("", "0")
DAY = int(os.environ.get("CCOM_TEST_DAY") or datetime.date.today().timetuple().tm_yday)


def due(cases, parts=2):
    """Every `parts`-th of the cases, beginning with another one each day."""
    cases = list(cases)
    return cases if LONG else cases[DAY % parts::parts]
