# SPDX-License-Identifier: Apache-2.0
"""The tables that tools/generate_tables.py makes, one module per table."""
