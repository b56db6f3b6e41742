// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/mapped_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

#include "batchloom/objstore/file_ops.h"
#include "batchloom/sources/fingerprint.h"

namespace batchloom::sources {

Result<SizedFile> open_sized(const std::string& path, std::string_view what) {
  objstore::Fd fd = objstore::Fd::open(path, O_RDONLY | O_NONBLOCK);
  if (!fd.is_open()) {
    if (errno == ENOENT) return Status::not_found(fmt::format("{}: there is no {}", path, what));
    return objstore::file_error(errno, "open", path);
  }
  struct stat info = {};
  if (fstat(fd.get(), &info) != 0) return objstore::file_error(errno, "look at", path);
  BL_ASSIGN_OR_RETURN(const FileStamp stamp, stamp_of(path, info));
  return SizedFile{.fd = std::move(fd), .size_bytes = stamp.size_bytes};
}

Result<std::unique_ptr<MappedFile>> MappedFile::open(const std::string& path,
                                                     std::string_view what) {
  BL_ASSIGN_OR_RETURN(const SizedFile file, open_sized(path, what));
  // An empty file cannot be mapped.
  if (file.size_bytes == 0) return std::unique_ptr<MappedFile>(new MappedFile(ByteSpan()));
  void* data = mmap(nullptr, file.size_bytes, PROT_READ, MAP_SHARED, file.fd.get(), 0);
  if (data == MAP_FAILED) return objstore::file_error(errno, "map", path);
  const ByteSpan bytes(static_cast<const std::byte*>(data), file.size_bytes);
  return std::unique_ptr<MappedFile>(new MappedFile(bytes));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace batchloom::sources
