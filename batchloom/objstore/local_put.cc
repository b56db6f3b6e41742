// SPDX-License-Identifier: Apache-2.0
// Steps 2 to 5 of the protocol in local_store.h, and removals.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "batchloom/base/hash.h"
#include "batchloom/objstore/content_etag.h"
#include "batchloom/objstore/local_store.h"

namespace batchloom::objstore {
namespace {

constexpr std::size_t kHashStretchBytes = std::size_t{1} << 20;

// A lock is held for a comparison and a rename, so waiting starts short.
constexpr Duration kFirstLockPause = std::chrono::microseconds(50);
constexpr Duration kLongestLockPause = std::chrono::milliseconds(2);

/// nullopt for a large object: hashing it would take about as long as writing it.
std::optional<Etag> etag_of(std::span<const ByteSpan> parts) {
  std::uint64_t size_bytes = 0;
  for (const ByteSpan part : parts) size_bytes += part.size();
  if (size_bytes > kPutEtagMaxBytes) return std::nullopt;
  ContentEtag content;
  for (const ByteSpan part : parts) content.add(part);
  return content.etag();
}

}  // namespace

Result<PutReply> LocalStore::put(std::string_view key, std::span<const ByteSpan> parts,
                                 const PutCondition& condition, const CallOptions& call) {
  BL_RETURN_IF_ERROR(may_start(call));
  BL_RETURN_IF_ERROR(validate_key(key));
  Place place{.key = key, .path = path_of(key), .folder = nullptr};
  BL_ASSIGN_OR_RETURN(place.folder, open_folder_above(key));
  BL_ASSIGN_OR_RETURN(const std::unique_ptr<TempFile> file, write_temp(parts));
  Result<PutReply> reply = condition.is_absent() ? create_object(*file, place, call)
                                                 : replace_object(*file, place, condition, call);
  if (reply.is_ok() && reply->outcome == PutOutcome::kApplied) reply->etag = etag_of(parts);
  return reply;
}

Result<std::unique_ptr<TempFile>> LocalStore::write_temp(std::span<const ByteSpan> parts) {
  const std::string folder = path_of(".tmp");
  Result<std::unique_ptr<TempFile>> file = files_.open_temp(folder);
  if (file.is(ErrorKind::kNotFound)) {
    BL_RETURN_IF_ERROR(files_.make_folder(folder).status());
    file = files_.open_temp(folder);
  }
  if (!file.is_ok()) return file;
  BL_RETURN_IF_ERROR((*file)->write(parts));
  if (syncs()) BL_RETURN_IF_ERROR((*file)->sync_data());
  return file;
}

Result<PutReply> LocalStore::create_object(TempFile& file, Place& place, const CallOptions& call) {
  BL_RETURN_IF_ERROR(runtime_.check(call));  // Writing may have taken long.
  const Result<bool> linked = file.link(place.path);
  if (!linked.is_ok()) return not_named(linked.status());
  if (*linked) return named(*place.folder);
  // What is no file will never be an object, and the key never be free.
  const auto size_bytes = files_.file_size(place.path);
  if (!size_bytes.is_ok()) return explain(place.key, size_bytes.status());
  return condition_failed(*place.folder);
}

Result<PutReply> LocalStore::replace_object(TempFile& file, Place& place,
                                            const PutCondition& condition,
                                            const CallOptions& call) {
  if (condition.is_matches()) BL_RETURN_IF_ERROR(settle_reads());
  bool holds = true;
  {
    BL_ASSIGN_OR_RETURN(const auto lock, lock_key(place.key, call));
    if (condition.is_matches()) {
      const auto current = current_etag(place.path);
      if (!current.is_ok()) return explain(place.key, current.status());
      holds = *current == condition.etag();
    }
    if (holds) {
      const Status replaced = file.replace(place.path);
      if (!replaced.is_ok()) return not_named(explain(place.key, replaced));
    }
  }
  return holds ? named(*place.folder) : condition_failed(*place.folder);
}

Result<PutReply> LocalStore::not_named(const Status& error) {
  if (!error.is(ErrorKind::kUnavailable)) return error;
  return PutReply{.outcome = PutOutcome::kUnknown,
                  .etag = std::nullopt,
                  .detail = std::string(distrust(error).message())};
}

Result<PutReply> LocalStore::named(Folder& folder) {
  PutReply reply{.outcome = PutOutcome::kApplied, .etag = std::nullopt, .detail = {}};
  if (const Status synced = sync(folder); !synced.is_ok()) {
    reply.outcome = PutOutcome::kUnknown;
    reply.detail = synced.message();
  }
  return reply;
}

Result<PutReply> LocalStore::condition_failed(Folder& folder) {
  BL_RETURN_IF_ERROR(sync(folder));
  return PutReply{.outcome = PutOutcome::kConditionFailed, .etag = std::nullopt, .detail = {}};
}

Result<std::optional<Etag>> LocalStore::current_etag(const std::string& path) {
  BL_ASSIGN_OR_RETURN(const auto file, files_.open_read(path));
  if (file == nullptr) return std::optional<Etag>();
  BL_ASSIGN_OR_RETURN(const std::uint64_t size_bytes, file->size_bytes());
  Bytes stretch(std::min<std::uint64_t>(size_bytes, kHashStretchBytes));
  ContentEtag content;
  for (std::uint64_t offset = 0; offset < size_bytes;) {
    BL_ASSIGN_OR_RETURN(const std::size_t got, file->read(offset, stretch));
    if (got == 0) break;
    content.add(ByteSpan(stretch).first(got));
    offset += got;
  }
  return std::optional(content.etag());
}

Result<std::unique_ptr<FileLock>> LocalStore::lock_key(std::string_view key,
                                                       const CallOptions& call) {
  const std::string path =
      path_of(fmt::format(".lock/{:02x}", xxh3_64(batchloom::as_bytes(key)) & 0xff));
  for (Duration pause = kFirstLockPause;; pause = std::min(2 * pause, kLongestLockPause)) {
    BL_RETURN_IF_ERROR(runtime_.check(call));
    Result<std::unique_ptr<FileLock>> lock = files_.try_lock(path);
    if (lock.is(ErrorKind::kNotFound)) {
      BL_RETURN_IF_ERROR(files_.make_folder(path_of(".lock")).status());
      lock = files_.try_lock(path);
    }
    if (!lock.is_ok() || *lock != nullptr) return lock;
    const Time wake = std::min(call.deadline, runtime_.now() + pause);
    BL_RETURN_IF_ERROR(runtime_.sleep_until({.deadline = wake, .stop = call.stop}));
  }
}

Result<std::vector<Status>> LocalStore::remove(std::span<const std::string> keys,
                                               const CallOptions& call) {
  std::map<std::string_view, std::vector<std::size_t>> by_folder;  // Indices into keys.
  for (std::size_t i = 0; i < keys.size(); ++i) {
    BL_RETURN_IF_ERROR(validate_key(keys[i]));
    const std::string_view key = keys[i];
    const std::size_t slash = key.rfind('/');
    by_folder[slash == std::string_view::npos ? std::string_view() : key.substr(0, slash)]
        .push_back(i);
  }
  BL_RETURN_IF_ERROR(may_start(call));
  BL_RETURN_IF_ERROR(settle_reads());
  std::vector<Status> replies(keys.size());
  for (const auto& [name, members] : by_folder) {
    BL_RETURN_IF_ERROR(may_start(call));
    const Result<std::unique_ptr<Folder>> folder = files_.open_folder(path_of(name));
    if (!folder.is_ok()) {
      for (const std::size_t i : members) replies[i] = folder.status();
      continue;
    }
    if (*folder == nullptr) continue;  // Then there are no such keys.
    for (const std::size_t i : members) {
      BL_RETURN_IF_ERROR(remove_one(keys[i], call, replies[i]));
    }
    BL_RETURN_IF_ERROR(sync(**folder));
  }
  return replies;
}

Status LocalStore::remove_one(const std::string& key, const CallOptions& call, Status& removed) {
  const Result<std::unique_ptr<FileLock>> lock = lock_key(key, call);
  if (!lock.is_ok()) BL_RETURN_IF_ERROR(may_start(call));
  // Also where it is missing, the folder is synced later: whoever removed it may not have.
  removed = lock.is_ok() ? explain(key, files_.unlink(path_of(key)).status()) : lock.status();
  return Status::ok();
}

}  // namespace batchloom::objstore
