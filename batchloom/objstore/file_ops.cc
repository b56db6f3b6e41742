// SPDX-License-Identifier: Apache-2.0
#include "batchloom/objstore/file_ops.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace batchloom::objstore {
namespace {

struct Meaning {
  ErrorKind kind;
  std::string_view advice;
};

Meaning meaning_of(int error) {
  switch (error) {
    case ENOENT: return {ErrorKind::kNotFound, "a folder above it is missing"};
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return {ErrorKind::kExhausted, "free space or raise the quota, then repeat"};
    case EMFILE:
    case ENFILE: return {ErrorKind::kExhausted, "raise the limit of open files (ulimit -n)"};
    case ENOMEM:
    case ENOLCK:
    case EMLINK: return {ErrorKind::kExhausted, "a limit of the operating system is reached"};
    case EACCES:
    case EPERM:
      return {
          ErrorKind::kInvalid,
          "no permission: check owner and mode, and that the file system allows this operation"};
    case EROFS: return {ErrorKind::kInvalid, "the file system is mounted read-only"};
    case EISDIR: return {ErrorKind::kInvalid, "this name is a folder"};
    case ENOTDIR:
      return {ErrorKind::kInvalid, "a part of this path is a file, so it cannot be a folder"};
    case ENAMETOOLONG:
      return {ErrorKind::kInvalid, "the file system takes at most 255 bytes between two '/'"};
    case EXDEV: return {ErrorKind::kInvalid, "all folders of a store must be on one file system"};
    case EINVAL:
    case ELOOP:
    case EOPNOTSUPP:
      return {ErrorKind::kInvalid, "the file system does not allow this operation here"};
    default: return {ErrorKind::kUnavailable, "check the disk and the kernel's log"};
  }
}

}  // namespace

Status not_a_file(std::string_view path, std::string_view what) {
  return Status::corruption(
      fmt::format("{} is {} and no plain file: move it away, or restore the file", path, what));
}

Status file_error(int error, std::string_view operation, std::string_view path) {
  const char* name = strerrorname_np(error);
  const char* description = strerrordesc_np(error);
  const Meaning meaning = meaning_of(error);
  return {meaning.kind, fmt::format("{} {}: {} ({}); {}", operation, path,
                                    description ? description : "unknown error",
                                    name ? name : std::to_string(error), meaning.advice)};
}

}  // namespace batchloom::objstore
