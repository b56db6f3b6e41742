// SPDX-License-Identifier: Apache-2.0
// Memory and file of a Parquet file, as Arrow wants them. Of ParquetFile alone.
#pragma once

#include <cstdint>
#include <memory>

#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"
#include "batchloom/sources/byte_reader.h"

namespace arrow {
class MemoryPool;
namespace io {
class RandomAccessFile;
}
}  // namespace arrow

namespace batchloom::sources {

/// Bounds what is allocated, for sizes come out of the file, and remembers the error that Arrow's
/// kinds cannot tell. One thread at a time.
class ParquetStorage {
 public:
  /// `max_bytes` bounds the memory of pages.
  ParquetStorage(std::unique_ptr<ByteReader> file, std::uint64_t max_bytes);
  ~ParquetStorage();

  /// Forgets what went wrong. `call` must outlive what is read until the next one.
  void begin(const CallOptions& call);
  /// Of a read of the file; ok where none failed.
  const Status& error() const;
  /// Whether more memory was asked for than there may be.
  bool is_refused() const;
  std::uint64_t max_bytes() const;

  const ByteReader& file() const;
  arrow::MemoryPool& pool();
  /// Borrows this.
  std::shared_ptr<arrow::io::RandomAccessFile> as_arrow();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace batchloom::sources
