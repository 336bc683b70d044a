# SPDX-License-Identifier: Apache-2.0
"""Tests of ccom for Python without torch, on the package that scripts/install-python installs.

pytest tests/python        half a minute on two cores
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
os.environ.setdefault("CCOM_SOCKET_IFNAME", "lo")
