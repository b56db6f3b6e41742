// SPDX-License-Identifier: Apache-2.0
// Where a stream lies, and the object store that is opened for it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "batchloom/base/metrics.h"
#include "batchloom/objstore/file_ops.h"
#include "batchloom/objstore/local_store.h"
#include "batchloom/objstore/metered_store.h"
#include "batchloom/objstore/retrying_store.h"
#include "batchloom/store/stream.h"

namespace batchloom::store {

/// A store URL, taken apart.
struct StoreLocation {
  std::string url;  ///< As it was given, for messages.
  std::string folder;
  objstore::FsyncPolicy fsync = objstore::FsyncPolicy::kAlways;
};

/// The folder that `url` names: "./dir", "../dir", "/abs/dir" or "file:///abs/dir". `invalid`,
/// saying what works, for all else; s3:// is not supported yet.
Result<std::string> parse_store_url(std::string_view url);

/// An object store with what it stands on: reads are retried, and every request is counted. Owned
/// by its command, which runs on one thread.
class OpenStore {
 public:
  /// `not_found` where the folder does not exist.
  static Result<std::unique_ptr<OpenStore>> open(const StoreLocation& location, Runtime& runtime);
  /// Makes the folder where it is missing (not those above it), and in it those of a stream.
  static Result<std::unique_ptr<OpenStore>> create(const StoreLocation& location, Runtime& runtime);

  objstore::ObjectStore& objects() { return *retrying_; }
  Counters& counters() { return counters_; }
  StreamDeps deps() { return {runtime_, *retrying_, counters_}; }
  /// The stream in this store; errors name the URL.
  Result<std::unique_ptr<Stream>> open_stream(const CallOptions& call,
                                              const StreamOptions& options = {});

 private:
  OpenStore(const StoreLocation& location, Runtime& runtime);
  void stack_on(std::unique_ptr<objstore::LocalStore> local);

  const StoreLocation location_;
  Runtime& runtime_;
  Counters counters_;
  std::unique_ptr<objstore::FileOps> files_;
  std::unique_ptr<objstore::LocalStore> local_;
  std::unique_ptr<objstore::MeteredStore> metered_;
  std::unique_ptr<objstore::RetryingStore> retrying_;
};

}  // namespace batchloom::store
