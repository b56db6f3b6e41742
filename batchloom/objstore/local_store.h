// SPDX-License-Identifier: Apache-2.0
// Objects as files of one folder, durable through power cuts, shared by any number of processes.
//
// A put under FsyncPolicy::kAlways:
//
//  1. The key's folder exists, and its own name and those above it were synced by this instance.
//  2. The bytes are written to a temporary file, and
//  3. fdatasync makes them durable. An error up to here: the put was surely not applied.
//  4. The file gets its name. absent: linkat, which fails where the name is taken. none: rename.
//     matches: rename after comparing the present content's hash. The last two, and removals, hold
//     the key's lock (a flock that all processes see) around just that, so that nothing comes
//     between a comparison and its rename.
//  5. fsync of the folder makes the name durable. Only then is the put acknowledged. A put that
//     finds its condition unmet syncs the folder too: what it lost to, survives a power cut.
//
// Every fsync is tried once, since the second may succeed without having written. If step 5 fails,
// or step 4 with an I/O error, the put is `kUnknown`, and this instance refuses all further calls:
// the name may be visible and yet not durable, and nobody must build on it. FsyncPolicy::kNone
// leaves out every sync; there, only a crash of the process loses nothing.
//
// A get may show another process's put before that put is acknowledged, and a power cut at this
// moment may undo it. So before a removal or a conditional replacement, which would survive such a
// cut, this instance syncs the folders in which it has seen objects since: nothing is removed on
// the word of something that may vanish.
//
// Layout: key "d/7f/x" is the file <root>/d/7f/x. Names beginning with a dot are the store's own:
// .tmp/ holds files on their way (swept by open() when their writer is dead), .lock/00 to .lock/ff
// the locks, each shared by the keys that hash to it.
//
// An object is a plain file. Where a folder, a pipe, a socket, a device or a link has a key's name,
// get, head and every conditional put end with `corruption`, naming the key, the path and what
// stands there; none of them waits for it. A listing shows the key, with 0 bytes, unless a folder
// has the name: that may hold other keys. An unconditional put takes the name, and remove() removes
// it, from anything but a folder. Links are not followed, not even to a plain file: whoever may
// change or lose that file does not keep this protocol. Folders, the root too, may be links.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/base/mutex.h"
#include "batchloom/objstore/file_ops.h"
#include "batchloom/objstore/object_store.h"

namespace batchloom::objstore {

enum class FsyncPolicy : std::uint8_t {
  kAlways,  ///< What was acknowledged survives a power cut; two or more flushes of the disk a put.
  kNone,    ///< A power cut may lose or tear anything written since; the disk is never waited for.
};

struct LocalStoreOptions {
  std::string root;                          ///< The folder that holds the objects.
  FsyncPolicy fsync = FsyncPolicy::kAlways;  ///< All processes of a store should use the same.
};

/// An ObjectStore in a folder of a file system with hard links and flock. Thread-safe.
class LocalStore final : public ObjectStore {
 public:
  /// Makes the folder `options.root` where it is missing, durably, and opens it. `not_found` where
  /// the folder above is missing. `files` and `runtime` must outlive the store.
  static Result<std::unique_ptr<LocalStore>> create(const LocalStoreOptions& options,
                                                    FileOps& files, Runtime& runtime,
                                                    const CallOptions& call = {});

  /// Opens an existing folder; `not_found` where there is none. Removes what killed writers left.
  static Result<std::unique_ptr<LocalStore>> open(const LocalStoreOptions& options, FileOps& files,
                                                  Runtime& runtime, const CallOptions& call = {});

  /// Makes `folders` ("m", "d/00") and those above them, durably, all at once. Later puts need not,
  /// which saves them a sync for each folder. Folders that exist are fine.
  Status prepare_folders(std::span<const std::string> folders, const CallOptions& call);

  Result<std::optional<ObjectData>> get(std::string_view key, ByteRange range,
                                        const CallOptions& call) override;
  Result<std::optional<ObjectData>> get_into(Bytes storage, std::string_view key, ByteRange range,
                                             const CallOptions& call) override;
  Result<std::optional<ObjectInfo>> head(std::string_view key, const CallOptions& call) override;
  Result<PutReply> put(std::string_view key, std::span<const ByteSpan> parts,
                       const PutCondition& condition, const CallOptions& call) override;
  Result<std::unique_ptr<Listing>> list(std::string_view prefix, std::string_view start_after,
                                        const CallOptions& call) override;
  Result<std::vector<Status>> remove(std::span<const std::string> keys,
                                     const CallOptions& call) override;
  Capabilities capabilities() const override {
    return {.conditional_create = true, .conditional_replace = true};
  }

 private:
  /// Where a put goes.
  struct Place {
    std::string_view key;
    std::string path;
    std::unique_ptr<Folder> folder;  // Opened before the file is named, since it can fail.
  };

  LocalStore(LocalStoreOptions options, FileOps& files, Runtime& runtime);

  std::string path_of(std::string_view key) const;
  bool syncs() const { return options_.fsync == FsyncPolicy::kAlways; }

  // Whether this instance still answers (the last part of the protocol above).
  Status may_start(const CallOptions& call);
  /// `error` of the file of `key`; names the key where something else than a file has its name.
  static Status explain(std::string_view key, const Status& error);
  Status distrust(const Status& cause);  // From now on; returns the refusal.
  Status sync(Folder& folder);           // As the policy says; distrusts on failure.

  void sweep_temp_files();
  Status make_folders(std::span<const std::string> folders);
  Status sync_folders(const std::set<std::string>& paths);
  Result<std::unique_ptr<Folder>> open_folder_above(std::string_view key);

  Result<std::unique_ptr<TempFile>> write_temp(std::span<const ByteSpan> parts);
  Result<PutReply> create_object(TempFile& file, Place& place, const CallOptions& call);
  Result<PutReply> replace_object(TempFile& file, Place& place, const PutCondition& condition,
                                  const CallOptions& call);
  Result<PutReply> not_named(const Status& error);
  Result<PutReply> named(Folder& folder);
  Result<PutReply> condition_failed(Folder& folder);
  Result<std::optional<Etag>> current_etag(const std::string& path);
  Result<std::unique_ptr<FileLock>> lock_key(std::string_view key, const CallOptions& call);
  Status remove_one(const std::string& key, const CallOptions& call, Status& removed);

  void note_read(std::string_view key);  // An object of this name was seen.
  Status settle_reads();                 // Makes the names seen since the last time durable.

  const LocalStoreOptions options_;
  FileOps& files_;
  Runtime& runtime_;
  Mutex mutex_;
  Status refusal_ BL_GUARDED_BY(mutex_);
  // Folders that exist, with their names synced by this instance where it syncs.
  std::set<std::string, std::less<>> known_folders_ BL_GUARDED_BY(mutex_);
  // Folders in which objects were seen since the last settle_reads().
  std::set<std::string, std::less<>> read_folders_ BL_GUARDED_BY(mutex_);
};

}  // namespace batchloom::objstore
