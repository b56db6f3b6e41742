// SPDX-License-Identifier: Apache-2.0
#include "batchloom/objstore/local_listing.h"

#include <string_view>
#include <utility>

namespace batchloom::objstore {
namespace {

constexpr std::size_t kPageSize = 1000;
constexpr std::uint64_t kEntriesBetweenChecks = 1024;

/// Whether some key begins with `prefix`. Everything else must not become a path ("../x").
bool can_begin_a_key(std::string_view prefix) {
  if (prefix.empty()) return true;
  if (prefix.ends_with('/')) prefix.remove_suffix(1);
  return validate_key(prefix).is_ok();
}

}  // namespace

LocalListing::LocalListing(FileOps& files, Query query,
                           std::function<Status(const CallOptions&)> may_go_on)
    : files_(files), query_(std::move(query)), may_go_on_(std::move(may_go_on)) {}

Result<std::vector<ListedObject>> LocalListing::next_page(const CallOptions& call) {
  BL_RETURN_IF_ERROR(may_go_on_(call));
  BL_RETURN_IF_ERROR(failure_);
  if (!std::exchange(started_, true)) failure_ = start();
  for (std::uint64_t seen = 1; failure_.is_ok() && !levels_.empty(); ++seen) {
    if (page_.size() == kPageSize) break;
    if (seen % kEntriesBetweenChecks == 0) BL_RETURN_IF_ERROR(may_go_on_(call));
    failure_ = advance();
  }
  BL_RETURN_IF_ERROR(failure_);
  return std::exchange(page_, {});
}

Status LocalListing::start() {
  if (!can_begin_a_key(query_.prefix)) return Status::ok();
  return enter(query_.prefix.substr(0, query_.prefix.rfind('/') + 1));
}

Status LocalListing::advance() {
  BL_ASSIGN_OR_RETURN(const std::optional<FolderEntry> entry, levels_.back().folder->next());
  if (entry) return visit(*entry);
  levels_.pop_back();
  return Status::ok();
}

Status LocalListing::visit(const FolderEntry& entry) {
  std::string key = levels_.back().key_prefix + entry.name;
  if (!validate_key(key).is_ok()) return Status::ok();
  if (entry.kind == EntryKind::kFolder) {
    key += '/';
    if (!key.starts_with(query_.prefix)) return Status::ok();
    // Either all keys in there come after start_after, or start_after is one of them.
    if (key < query_.start_after && !query_.start_after.starts_with(key)) return Status::ok();
    return enter(std::move(key));
  }
  if (!key.starts_with(query_.prefix) || key <= query_.start_after) return Status::ok();
  auto size_bytes = files_.file_size(query_.root + "/" + key);
  // Something else than a file has taken the key. Whoever reads it learns what that is.
  if (size_bytes.is(ErrorKind::kCorruption)) size_bytes = std::optional(std::uint64_t{0});
  BL_RETURN_IF_ERROR(size_bytes.status());
  if (*size_bytes) page_.push_back({.key = std::move(key), .size_bytes = **size_bytes});
  return Status::ok();
}

Status LocalListing::enter(std::string key_prefix) {
  const std::string path =
      query_.root + "/" + key_prefix.substr(0, key_prefix.empty() ? 0 : key_prefix.size() - 1);
  BL_ASSIGN_OR_RETURN(auto folder, files_.open_folder(path));
  if (folder != nullptr) {
    levels_.push_back({std::move(key_prefix), std::move(folder)});
    return Status::ok();
  }
  // No folder, and so no keys: unless a pipe or a link to nothing has its name. What that hides is
  // not known, and must not look as if it were nothing.
  return files_.file_size(path).status();
}

}  // namespace batchloom::objstore
