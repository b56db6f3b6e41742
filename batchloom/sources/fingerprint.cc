// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/fingerprint.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "batchloom/base/hash.h"
#include "batchloom/objstore/file_ops.h"

namespace batchloom::sources {
namespace {

/// 1,234,567.
std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string_view kind_name(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFDIR: return "a folder";
    case S_IFIFO: return "a pipe";
    case S_IFSOCK: return "a socket";
    default: return "a device";
  }
}

std::optional<std::string> size_difference(std::uint64_t before, std::uint64_t now) {
  if (before == now) return std::nullopt;
  return fmt::format("{} from {} to {} bytes", now > before ? "grew" : "shrank", grouped(before),
                     grouped(now));
}

std::optional<std::string> time_difference(std::int64_t before, std::int64_t now) {
  if (before == now) return std::nullopt;
  constexpr std::int64_t kNsPerSecond = 1'000'000'000;
  const auto distance = now > before
                            ? static_cast<std::uint64_t>(now) - static_cast<std::uint64_t>(before)
                            : static_cast<std::uint64_t>(before) - static_cast<std::uint64_t>(now);
  return fmt::format("was modified: its time is {}.{:09} s {}", grouped(distance / kNsPerSecond),
                     distance % kNsPerSecond, now > before ? "later" : "earlier");
}

}  // namespace

Result<FileStamp> stamp_of(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return Status::not_found(fmt::format("{}: there is no such file", path));
    return objstore::file_error(errno, "look at", path);
  }
  return stamp_of(path, info);
}

Result<FileStamp> stamp_of(const std::string& path, const struct stat& info) {
  if (!S_ISREG(info.st_mode)) {
    return Status::invalid(fmt::format("{}: {}, not a plain file", path, kind_name(info.st_mode)));
  }
  return FileStamp{
      .size_bytes = static_cast<std::uint64_t>(info.st_size),
      .modified_ns = std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec,
      .device = info.st_dev,
      .inode = info.st_ino};
}

Result<std::uint64_t> ends_checksum(ByteReader& file, const CallOptions& call) {
  const std::uint64_t size = file.size_bytes();
  const std::uint64_t first_end = std::min(size, kFingerprintEndBytes);
  const std::uint64_t last_begin = std::max(first_end, size - std::min(size, kFingerprintEndBytes));
  Bytes ends(first_end + (size - last_begin));
  const std::span<std::byte> out(ends);
  BL_RETURN_IF_ERROR(file.read_at(0, out.first(first_end), call));
  BL_RETURN_IF_ERROR(file.read_at(last_begin, out.subspan(first_end), call));
  return xxh3_64(ends);
}

Result<ShardFingerprint> fingerprint_of(const FileStamp& stamp, ByteReader& file,
                                        const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(const std::uint64_t checksum, ends_checksum(file, call));
  return ShardFingerprint{
      .size_bytes = stamp.size_bytes, .modified_ns = stamp.modified_ns, .ends_checksum = checksum};
}

std::optional<std::string> difference(const ShardFingerprint& before, const FileStamp& now) {
  if (auto size = size_difference(before.size_bytes, now.size_bytes)) return size;
  return time_difference(before.modified_ns, now.modified_ns);
}

std::optional<std::string> difference(const ShardFingerprint& before, const ShardFingerprint& now) {
  if (auto size = size_difference(before.size_bytes, now.size_bytes)) return size;
  if (auto time = time_difference(before.modified_ns, now.modified_ns)) return time;
  if (before.ends_checksum == now.ends_checksum) return std::nullopt;
  return fmt::format(
      "has other content under the same size and time: the checksum of its ends was {:016x} and is "
      "{:016x}",
      before.ends_checksum, now.ends_checksum);
}

std::optional<std::string> difference(const FileStamp& before, const FileStamp& now) {
  if (auto size = size_difference(before.size_bytes, now.size_bytes)) return size;
  if (auto time = time_difference(before.modified_ns, now.modified_ns)) return time;
  if (before == now) return std::nullopt;
  return fmt::format("was replaced by another file (inode {}, it was {})", now.inode, before.inode);
}

Status check_unchanged(const std::string& path, const FileStamp& before, const FileStamp& now) {
  const auto what = difference(before, now);
  if (!what) return Status::ok();
  return Status::conflict(fmt::format(
      "{} {} during this run: restore it, or index it again and start anew", path, *what));
}

}  // namespace batchloom::sources
