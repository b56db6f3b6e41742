// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/byte_reader.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "batchloom/objstore/file_ops.h"
#include "batchloom/objstore/posix_fd.h"
#include "batchloom/sources/faults.h"

namespace batchloom::sources {
namespace {

/// A stop token is looked at after so many bytes.
constexpr std::size_t kBytesAtOnce = std::size_t{8} << 20;

/// What both readers refuse.
Status check_range(const ByteReader& file, std::uint64_t offset, std::size_t count) {
  if (offset <= file.size_bytes() && count <= file.size_bytes() - offset) return Status::ok();
  return shard_fault(
      file.name(), file.size_bytes(),
      fmt::format("the file ends here; {} bytes were expected at offset {}", count, offset));
}

class PlainFile final : public ByteReader {
 public:
  PlainFile(std::string path, objstore::Fd file, std::uint64_t size_bytes)
      : path_(std::move(path)), file_(std::move(file)), size_bytes_(size_bytes) {}

  std::string_view name() const override { return path_; }
  std::uint64_t size_bytes() const override { return size_bytes_; }

  Status read_at(std::uint64_t offset, std::span<std::byte> out, const CallOptions& call) override {
    BL_RETURN_IF_ERROR(check_range(*this, offset, out.size()));
    while (!out.empty()) {
      if (call.stop.stop_requested()) {
        return Status::cancelled(fmt::format("{}: reading was stopped", path_));
      }
      const ssize_t count = objstore::retry_interrupted([&] {
        return pread(file_.get(), out.data(), std::min(out.size(), kBytesAtOnce),
                     static_cast<off_t>(offset));
      });
      if (count < 0) return objstore::file_error(errno, "read", path_);
      if (count == 0) {
        return shard_fault(
            path_, offset,
            fmt::format("the file ends here; it had {} bytes when it was opened", size_bytes_));
      }
      offset += static_cast<std::uint64_t>(count);
      out = out.subspan(static_cast<std::size_t>(count));
    }
    return Status::ok();
  }

 private:
  std::string path_;
  objstore::Fd file_;
  std::uint64_t size_bytes_;
};

class BytesInMemory final : public ByteReader {
 public:
  BytesInMemory(std::string name, Bytes bytes) : name_(std::move(name)), bytes_(std::move(bytes)) {}

  std::string_view name() const override { return name_; }
  std::uint64_t size_bytes() const override { return bytes_.size(); }

  Status read_at(std::uint64_t offset, std::span<std::byte> out, const CallOptions& call) override {
    BL_RETURN_IF_ERROR(check_range(*this, offset, out.size()));
    if (call.stop.stop_requested()) {
      return Status::cancelled(fmt::format("{}: reading was stopped", name_));
    }
    std::ranges::copy(ByteSpan(bytes_).subspan(offset, out.size()), out.begin());
    return Status::ok();
  }

 private:
  std::string name_;
  Bytes bytes_;
};

}  // namespace

Result<std::unique_ptr<ByteReader>> open_file(const std::string& path) {
  // Without O_NONBLOCK a pipe of that name would block until somebody writes.
  objstore::Fd file = objstore::Fd::open(path, O_RDONLY | O_NONBLOCK);
  if (!file.is_open()) {
    if (errno == ENOENT) return Status::not_found(fmt::format("{}: there is no such file", path));
    return objstore::file_error(errno, "open", path);
  }
  struct stat about{};
  if (fstat(file.get(), &about) != 0) return objstore::file_error(errno, "look at", path);
  if (!S_ISREG(about.st_mode)) {
    return Status::invalid(fmt::format("{}: a {}, not a plain file", path,
                                       S_ISDIR(about.st_mode) ? "folder" : "pipe or device"));
  }
  return std::unique_ptr<ByteReader>(std::make_unique<PlainFile>(
      path, std::move(file), static_cast<std::uint64_t>(about.st_size)));
}

std::unique_ptr<ByteReader> read_bytes(std::string name, Bytes bytes) {
  return std::make_unique<BytesInMemory>(std::move(name), std::move(bytes));
}

}  // namespace batchloom::sources
