// SPDX-License-Identifier: Apache-2.0
// Opening, reading, folders, and when an instance stops answering.
#include "batchloom/objstore/local_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "batchloom/base/log.h"
#include "batchloom/objstore/content_etag.h"
#include "batchloom/objstore/local_listing.h"

namespace batchloom::objstore {
namespace {

/// "a/b" of "a/b/c"; empty where there is no '/'.
std::string_view above(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

/// The folder that holds the folder `path`, as a path that can be opened.
std::string folder_above_root(const std::string& path) {
  if (path.find('/') == std::string::npos) return ".";
  const std::string_view folder = above(path);
  return folder.empty() ? "/" : std::string(folder);
}

LocalStoreOptions without_trailing_slashes(LocalStoreOptions options) {
  while (options.root.size() > 1 && options.root.back() == '/') options.root.pop_back();
  return options;
}

}  // namespace

LocalStore::LocalStore(LocalStoreOptions options, FileOps& files, Runtime& runtime)
    : options_(std::move(options)), files_(files), runtime_(runtime) {}

Result<std::unique_ptr<LocalStore>> LocalStore::create(const LocalStoreOptions& options,
                                                       FileOps& files, Runtime& runtime,
                                                       const CallOptions& call) {
  BL_RETURN_IF_ERROR(runtime.check(call));
  const LocalStoreOptions cleaned = without_trailing_slashes(options);
  if (cleaned.root.empty()) return Status::invalid("make a local store: its root is empty");
  if (Result<bool> made = files.make_folder(cleaned.root); !made.is_ok()) {
    return made.status().with_context("make a local store");
  }
  if (cleaned.fsync == FsyncPolicy::kAlways) {
    BL_ASSIGN_OR_RETURN(const auto folder, files.open_folder(folder_above_root(cleaned.root)));
    if (folder != nullptr) BL_RETURN_IF_ERROR(folder->sync());
  }
  return open(cleaned, files, runtime, call);
}

Result<std::unique_ptr<LocalStore>> LocalStore::open(const LocalStoreOptions& options,
                                                     FileOps& files, Runtime& runtime,
                                                     const CallOptions& call) {
  BL_RETURN_IF_ERROR(runtime.check(call));
  std::unique_ptr<LocalStore> store(
      new LocalStore(without_trailing_slashes(options), files, runtime));
  const std::string& root = store->options_.root;
  BL_ASSIGN_OR_RETURN(auto folder, files.open_folder(root));
  if (folder == nullptr) {
    const auto file = files.file_size(root);
    if (!file.is_ok() && !file.is(ErrorKind::kCorruption)) return file.status();
    if (file.is_ok() && !*file) {
      return Status::not_found(fmt::format(
          "open the local store '{}': there is no such folder; check the path, or make the store",
          options.root));
    }
    // Something is there. It may be the folder, made by somebody since.
    BL_ASSIGN_OR_RETURN(folder, files.open_folder(root));
  }
  if (folder == nullptr) {
    return Status::invalid(fmt::format(
        "open the local store '{}': it is no folder; name one, or a path where there is nothing",
        options.root));
  }
  store->sweep_temp_files();
  return store;
}

void LocalStore::sweep_temp_files() {
  // Housekeeping: a reader may lack the permission, and the next open can do it as well.
  const auto sweep = [this]() -> Status {
    const std::string path = path_of(".tmp");
    BL_ASSIGN_OR_RETURN(const auto folder, files_.open_folder(path));
    if (folder == nullptr) return Status::ok();
    for (;;) {
      BL_ASSIGN_OR_RETURN(const auto entry, folder->next());
      if (!entry) return Status::ok();
      BL_RETURN_IF_ERROR(files_.sweep_temp(path + "/" + entry->name).status());
    }
  };
  const Status swept = sweep();
  if (!swept.is_ok()) log_warning("left-over temporary files stay: " + swept.to_string());
}

std::string LocalStore::path_of(std::string_view key) const {
  return key.empty() ? options_.root : fmt::format("{}/{}", options_.root, key);
}

Status LocalStore::may_start(const CallOptions& call) {
  BL_RETURN_IF_ERROR(runtime_.check(call));
  const MutexLock lock(mutex_);
  return refusal_;
}

Status LocalStore::explain(std::string_view key, const Status& error) {
  if (!error.is(ErrorKind::kCorruption)) return error;
  return Status::corruption(fmt::format("{}: at byte 0: no object: {}", key, error.message()));
}

Status LocalStore::distrust(const Status& cause) {
  const MutexLock lock(mutex_);
  if (refusal_.is_ok()) {
    refusal_ = Status::corruption(fmt::format(
        "the local store '{}' answers no more calls, since names it shows may not be on the disk: "
        "{}. Check the disk, then open the store again",
        options_.root, cause.to_string()));
  }
  return refusal_;
}

Status LocalStore::sync(Folder& folder) {
  if (!syncs()) return Status::ok();
  const Status synced = folder.sync();
  return synced.is_ok() ? synced : distrust(synced);
}

Status LocalStore::prepare_folders(std::span<const std::string> folders, const CallOptions& call) {
  BL_RETURN_IF_ERROR(may_start(call));
  for (const std::string& folder : folders) BL_RETURN_IF_ERROR(validate_key(folder));
  return make_folders(folders);
}

Status LocalStore::make_folders(std::span<const std::string> folders) {
  std::set<std::string> unknown;  // In byte order, so that "a" comes before "a/b".
  {
    const MutexLock lock(mutex_);
    for (std::string_view folder : folders) {
      for (; !folder.empty() && !known_folders_.contains(folder); folder = above(folder)) {
        unknown.emplace(folder);
      }
    }
  }
  if (unknown.empty()) return Status::ok();
  // Folders that exist are synced too: whoever made them may not have come to that.
  std::set<std::string> to_sync;
  for (const std::string& folder : unknown) {
    BL_RETURN_IF_ERROR(files_.make_folder(path_of(folder)).status());
    to_sync.insert(path_of(above(folder)));
  }
  if (syncs()) BL_RETURN_IF_ERROR(sync_folders(to_sync));
  const MutexLock lock(mutex_);
  known_folders_.insert(unknown.begin(), unknown.end());
  return Status::ok();
}

Status LocalStore::sync_folders(const std::set<std::string>& paths) {
  for (const std::string& path : paths) {
    BL_ASSIGN_OR_RETURN(const auto folder, files_.open_folder(path));
    if (folder == nullptr) return Status::unavailable(fmt::format("folder {} vanished", path));
    BL_RETURN_IF_ERROR(sync(*folder));
  }
  return Status::ok();
}

Result<std::unique_ptr<Folder>> LocalStore::open_folder_above(std::string_view key) {
  const std::string folder(above(key));
  const std::string path = path_of(folder);
  for (int attempt = 0; attempt < 2; ++attempt) {
    BL_RETURN_IF_ERROR(make_folders(std::span(&folder, 1)));
    BL_ASSIGN_OR_RETURN(std::unique_ptr<Folder> opened, files_.open_folder(path));
    if (opened != nullptr) return opened;
    const auto size_bytes = files_.file_size(path);
    if (!size_bytes.is_ok()) {
      return size_bytes.status().with_context(fmt::format("put '{}': it has no folder", key));
    }
    if (*size_bytes) {
      return Status::invalid(fmt::format(
          "put '{}': '{}' is an object, so it cannot be a folder too; choose another key", key,
          folder));
    }
    const MutexLock lock(mutex_);  // Somebody removed it behind our back.
    known_folders_.clear();
  }
  return Status::unavailable(fmt::format("put '{}': its folder {} keeps vanishing", key, path));
}

void LocalStore::note_read(std::string_view key) {
  if (!syncs()) return;
  const std::string_view folder = above(key);
  const MutexLock lock(mutex_);
  if (!read_folders_.contains(folder)) read_folders_.emplace(folder);
}

Status LocalStore::settle_reads() {
  std::set<std::string, std::less<>> folders;
  {
    const MutexLock lock(mutex_);
    folders.swap(read_folders_);
  }
  Status settled;
  for (auto it = folders.begin(); it != folders.end() && settled.is_ok(); ++it) {
    const auto folder = files_.open_folder(path_of(*it));
    settled = !folder.is_ok()      ? folder.status()
              : *folder != nullptr ? sync(**folder)
                                   : Status::ok();
  }
  if (settled.is_ok()) return settled;
  const MutexLock lock(mutex_);
  read_folders_.merge(folders);
  return settled;
}

Result<std::optional<ObjectData>> LocalStore::get(std::string_view key, ByteRange range,
                                                  const CallOptions& call) {
  return get_into({}, key, range, call);
}

Result<std::optional<ObjectData>> LocalStore::get_into(Bytes storage, std::string_view key,
                                                       ByteRange range, const CallOptions& call) {
  BL_RETURN_IF_ERROR(may_start(call));
  BL_RETURN_IF_ERROR(validate_key(key));
  const auto opened = files_.open_read(path_of(key));
  if (!opened.is_ok()) return explain(key, opened.status());
  if (*opened == nullptr) return std::optional<ObjectData>();
  ReadFile& file = **opened;
  note_read(key);
  BL_ASSIGN_OR_RETURN(const std::uint64_t size_bytes, file.size_bytes());
  if (range.offset > size_bytes) {
    return Status::invalid(fmt::format("get '{}': offset {} is beyond the object's {} bytes", key,
                                       range.offset, size_bytes));
  }
  ObjectData data;
  data.object_size_bytes = size_bytes;
  data.bytes = std::move(storage);
  const std::uint64_t wanted = std::min(range.length, size_bytes - range.offset);
  if (data.bytes.capacity() < wanted) data.bytes.clear();  // Else its content would be copied.
  data.bytes.resize(wanted);
  BL_ASSIGN_OR_RETURN(const std::size_t got, file.read(range.offset, data.bytes));
  data.bytes.resize(got);
  if (range.covers(size_bytes)) {
    ContentEtag content;
    content.add(data.bytes);
    data.etag = content.etag();
  }
  return std::optional(std::move(data));
}

Result<std::optional<ObjectInfo>> LocalStore::head(std::string_view key, const CallOptions& call) {
  BL_RETURN_IF_ERROR(may_start(call));
  BL_RETURN_IF_ERROR(validate_key(key));
  const auto size_bytes = files_.file_size(path_of(key));
  if (!size_bytes.is_ok()) return explain(key, size_bytes.status());
  if (!*size_bytes) return std::optional<ObjectInfo>();
  note_read(key);
  return std::optional(ObjectInfo{.size_bytes = **size_bytes});
}

Result<std::unique_ptr<Listing>> LocalStore::list(std::string_view prefix,
                                                  std::string_view start_after,
                                                  const CallOptions& call) {
  BL_RETURN_IF_ERROR(may_start(call));
  return std::unique_ptr<Listing>(std::make_unique<LocalListing>(
      files_, LocalListing::Query{options_.root, std::string(prefix), std::string(start_after)},
      [this](const CallOptions& next) { return may_start(next); }));
}

}  // namespace batchloom::objstore
