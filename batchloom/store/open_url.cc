// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/open_url.h"

#include <fmt/format.h>

#include <vector>

#include "batchloom/objstore/posix_file_ops.h"
#include "batchloom/store/keys.h"

namespace batchloom::store {
namespace {

constexpr std::string_view kWhatWorks =
    "a store is a folder: ./dir, ../dir, /abs/dir or file:///abs/dir";

/// The folders of a stream, so that no put has to make one.
std::vector<std::string> stream_folders() {
  std::vector<std::string> folders = {"m", "s", "gc"};
  for (unsigned byte = 0; byte < 256; ++byte) {
    folders.push_back(fmt::format("{}{:02x}", kDataPrefix, byte));
  }
  return folders;
}

}  // namespace

Result<std::string> parse_store_url(std::string_view url) {
  const auto refuse = [&](std::string_view why) {
    return Status::invalid(fmt::format("'{}': {}; {}", url, why, kWhatWorks));
  };
  constexpr std::string_view kFile = "file://";
  if (url.starts_with("s3://")) return refuse("object storage is not supported yet");
  if (url.starts_with(kFile)) {
    const std::string_view path = url.substr(kFile.size());
    if (!path.starts_with('/')) return refuse("a file URL has no host and an absolute path");
    if (path.find('%') != std::string_view::npos) {
      return refuse("%-escapes are not decoded, write the path itself");
    }
    return std::string(path);
  }
  if (url.find("://") != std::string_view::npos) return refuse("unknown kind of URL");
  const bool is_path = url.starts_with('/') || url.starts_with("./") || url.starts_with("../") ||
                       url == "." || url == "..";
  if (!is_path) return refuse(fmt::format("not a URL; did you mean ./{}?", url));
  return std::string(url);
}

OpenStore::OpenStore(const StoreLocation& location, Runtime& runtime)
    : location_(location), runtime_(runtime), files_(objstore::make_posix_file_ops()) {}

void OpenStore::stack_on(std::unique_ptr<objstore::LocalStore> local) {
  local_ = std::move(local);
  metered_ = std::make_unique<objstore::MeteredStore>(*local_, counters_);
  retrying_ = std::make_unique<objstore::RetryingStore>(*metered_, runtime_, counters_);
}

Result<std::unique_ptr<OpenStore>> OpenStore::open(const StoreLocation& location,
                                                   Runtime& runtime) {
  std::unique_ptr<OpenStore> store(new OpenStore(location, runtime));
  BL_ASSIGN_OR_RETURN(auto local,
                      objstore::LocalStore::open({.root = location.folder, .fsync = location.fsync},
                                                 *store->files_, runtime));
  store->stack_on(std::move(local));
  return store;
}

Result<std::unique_ptr<OpenStore>> OpenStore::create(const StoreLocation& location,
                                                     Runtime& runtime) {
  std::unique_ptr<OpenStore> store(new OpenStore(location, runtime));
  BL_ASSIGN_OR_RETURN(
      auto local, objstore::LocalStore::create({.root = location.folder, .fsync = location.fsync},
                                               *store->files_, runtime));
  BL_RETURN_IF_ERROR(local->prepare_folders(stream_folders(), {}));
  store->stack_on(std::move(local));
  return store;
}

Result<std::unique_ptr<Stream>> OpenStore::open_stream(const CallOptions& call,
                                                       const StreamOptions& options) {
  auto stream = Stream::open(deps(), options, call);
  if (!stream.is_ok()) return stream.status().with_context(location_.url);
  return stream;
}

}  // namespace batchloom::store
