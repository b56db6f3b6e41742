# SPDX-License-Identifier: Apache-2.0
"""The rules of tools/tidy.py, grouped by what they look at."""
