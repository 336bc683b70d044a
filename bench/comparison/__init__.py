# SPDX-License-Identifier: Apache-2.0
"""The parts of bench/compare and bench/plot, and what the programs of bench share.

Standard library only; results.py and figure.py start no process.
"""
