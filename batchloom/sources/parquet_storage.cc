// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/parquet_storage.h"

#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <arrow/memory_pool.h>
#include <arrow/result.h>
#include <arrow/status.h>

#include <algorithm>
#include <span>
#include <utility>

namespace batchloom::sources {
namespace {

/// Memory for pages, within a bound: sizes come out of the file.
class BoundedPool final : public arrow::MemoryPool {
 public:
  explicit BoundedPool(std::uint64_t max_bytes) : max_bytes_(max_bytes) {}

  void begin() { is_refused_ = false; }
  bool is_refused() const { return is_refused_; }
  std::uint64_t max_bytes() const { return max_bytes_; }

  arrow::Status Allocate(std::int64_t size, std::int64_t alignment, std::uint8_t** out) override {
    ARROW_RETURN_NOT_OK(check(size));
    return pool_.Allocate(size, alignment, out);
  }
  arrow::Status Reallocate(std::int64_t old_size, std::int64_t new_size, std::int64_t alignment,
                           std::uint8_t** ptr) override {
    if (new_size > old_size) ARROW_RETURN_NOT_OK(check(new_size - old_size));
    return pool_.Reallocate(old_size, new_size, alignment, ptr);
  }
  void Free(std::uint8_t* buffer, std::int64_t size, std::int64_t alignment) override {
    pool_.Free(buffer, size, alignment);
  }
  std::int64_t bytes_allocated() const override { return pool_.bytes_allocated(); }
  std::int64_t total_bytes_allocated() const override { return pool_.total_bytes_allocated(); }
  std::int64_t num_allocations() const override { return pool_.num_allocations(); }
  std::string backend_name() const override { return pool_.backend_name(); }

 private:
  arrow::Status check(std::int64_t more) {
    const auto held = static_cast<std::uint64_t>(pool_.bytes_allocated());
    if (more >= 0 && held <= max_bytes_ && static_cast<std::uint64_t>(more) <= max_bytes_ - held) {
      return arrow::Status::OK();
    }
    is_refused_ = true;
    return arrow::Status::OutOfMemory("beyond the bound");
  }

  const std::uint64_t max_bytes_;
  bool is_refused_ = false;
  // Counts what this file takes, not what the process does.
  arrow::ProxyMemoryPool pool_{arrow::system_memory_pool()};
};

/// A ByteReader as Arrow's file; remembers the error that Arrow's kinds cannot tell.
class ArrowFile final : public arrow::io::RandomAccessFile {
 public:
  ArrowFile(std::unique_ptr<ByteReader> file, arrow::MemoryPool& pool)
      : file_(std::move(file)), pool_(pool) {}

  /// `call` must outlive what is read until the next one.
  void begin(const CallOptions& call) {
    call_ = &call;
    error_ = Status::ok();
  }
  const Status& error() const { return error_; }
  const ByteReader& file() const { return *file_; }

  arrow::Result<std::int64_t> ReadAt(std::int64_t position, std::int64_t size, bool allow_short,
                                     void* out) override {
    const auto end = static_cast<std::int64_t>(file_->size_bytes());
    if (position < 0 || size < 0) return arrow::Status::Invalid("a negative place");
    const std::int64_t count = std::min(size, std::max<std::int64_t>(end - position, 0));
    if (count < size && !allow_short) return arrow::Status::IOError("the file ends before");
    if (count == 0) return count;
    error_ = file_->read_at(
        static_cast<std::uint64_t>(position),
        std::span(static_cast<std::byte*>(out), static_cast<std::size_t>(count)), *call_);
    if (!error_.is_ok()) return arrow::Status::IOError("not read");
    return count;
  }
  arrow::Result<std::int64_t> ReadAt(std::int64_t position, std::int64_t size, void* out) override {
    return ReadAt(position, size, true, out);
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(std::int64_t position, std::int64_t size,
                                                       bool allow_short) override {
    // What is allocated depends on the file's size, not on what it says.
    const auto end = static_cast<std::int64_t>(file_->size_bytes());
    const std::int64_t room =
        std::clamp<std::int64_t>(end - position, 0, std::max<std::int64_t>(size, 0));
    ARROW_ASSIGN_OR_RAISE(std::shared_ptr<arrow::ResizableBuffer> buffer,
                          arrow::AllocateResizableBuffer(room, &pool_));
    if (room < size && !allow_short) return arrow::Status::IOError("the file ends before");
    ARROW_ASSIGN_OR_RAISE(const std::int64_t count,
                          ReadAt(position, room, true, buffer->mutable_data()));
    ARROW_RETURN_NOT_OK(buffer->Resize(count));
    return std::shared_ptr<arrow::Buffer>(std::move(buffer));
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(std::int64_t position,
                                                       std::int64_t size) override {
    return ReadAt(position, size, true);
  }
  arrow::Result<std::int64_t> Read(std::int64_t size, void* out) override {
    ARROW_ASSIGN_OR_RAISE(const std::int64_t count, ReadAt(position_, size, true, out));
    position_ += count;
    return count;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(std::int64_t size) override {
    ARROW_ASSIGN_OR_RAISE(auto buffer, ReadAt(position_, size, true));
    position_ += buffer->size();
    return buffer;
  }
  arrow::Result<std::int64_t> GetSize() override {
    return static_cast<std::int64_t>(file_->size_bytes());
  }
  arrow::Result<std::int64_t> Tell() const override { return position_; }
  arrow::Status Seek(std::int64_t position) override {
    position_ = position;
    return arrow::Status::OK();
  }
  arrow::Status Close() override { return arrow::Status::OK(); }
  bool closed() const override { return false; }

 private:
  std::unique_ptr<ByteReader> file_;
  arrow::MemoryPool& pool_;
  const CallOptions* call_ = nullptr;
  Status error_;
  std::int64_t position_ = 0;
};

}  // namespace

class ParquetStorage::Impl {
 public:
  Impl(std::unique_ptr<ByteReader> file, std::uint64_t max_bytes)
      : pool(max_bytes), arrow_file(std::make_shared<ArrowFile>(std::move(file), pool)) {}

  BoundedPool pool;
  const std::shared_ptr<ArrowFile> arrow_file;
};

ParquetStorage::ParquetStorage(std::unique_ptr<ByteReader> file, std::uint64_t max_bytes)
    : impl_(std::make_unique<Impl>(std::move(file), max_bytes)) {}
ParquetStorage::~ParquetStorage() = default;

void ParquetStorage::begin(const CallOptions& call) {
  impl_->arrow_file->begin(call);
  impl_->pool.begin();
}

const Status& ParquetStorage::error() const {
  return impl_->arrow_file->error();
}
bool ParquetStorage::is_refused() const {
  return impl_->pool.is_refused();
}
std::uint64_t ParquetStorage::max_bytes() const {
  return impl_->pool.max_bytes();
}
const ByteReader& ParquetStorage::file() const {
  return impl_->arrow_file->file();
}
arrow::MemoryPool& ParquetStorage::pool() {
  return impl_->pool;
}
std::shared_ptr<arrow::io::RandomAccessFile> ParquetStorage::as_arrow() {
  return impl_->arrow_file;
}

}  // namespace batchloom::sources
