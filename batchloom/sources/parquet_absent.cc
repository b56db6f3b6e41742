// SPDX-License-Identifier: Apache-2.0
// Where pyarrow is absent, this file is built instead of parquet_reader.cc and parquet_file.cc.
#include "batchloom/sources/parquet_reader.h"

namespace batchloom::sources {

Status parquet_is_built() {
  return Status::invalid(
      "this build reads no Parquet: pyarrow was not found; install it (pip install "
      "pyarrow==" BATCHLOOM_PYARROW ", or scripts/setup), then configure and build again");
}

Result<std::unique_ptr<ShardReader>> open_parquet(std::unique_ptr<ByteReader> file,
                                                  ParquetSettings /*settings*/,
                                                  const Tokenizer& /*tokenizer*/,
                                                  const CallOptions& /*call*/) {
  return parquet_is_built().with_context(file->name());
}

}  // namespace batchloom::sources
