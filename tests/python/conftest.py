# SPDX-License-Identifier: Apache-2.0
"""Tests of ccom for Python without torch, on the package that scripts/install-python installs.

pytest tests/python        half a minute on two cores
"""

import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [FOLDER, os.path.dirname(FOLDER)]
os.environ.setdefault("CCOM_SOCKET_IFNAME", "lo")
