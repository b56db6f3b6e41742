# SPDX-License-Identifier: Apache-2.0
"""Made-up shards of every format, for tests and for runs under kills.

Compressed files and tars are written by the foreign commands (gzip, zstd, GNU tar), Parquet by
pyarrow. The same records give the same bytes.
"""
