// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "batchloom/objstore/file_ops.h"
#include "batchloom/objstore/object_store.h"

namespace batchloom::objstore {

/// A walk over the files below a folder, one entry at a time: time is linear in the names of the
/// folders it visits, memory in their depth and the page. It opens only folders that can hold keys
/// with the prefix. A removed file may be shown or not; names that no key can have are not shown.
/// What is neither a file nor a folder has taken a key: it is shown, with 0 bytes. In the place of
/// a folder that is to be read it is `corruption`. One thread at a time.
class LocalListing final : public Listing {
 public:
  struct Query {
    std::string root;         ///< The store's folder.
    std::string prefix;       ///< "m/", "m/000", "a-", or empty for all.
    std::string start_after;  ///< Only keys above this one, in byte order.
  };

  /// `may_go_on` says whether the store still answers, and looks at deadline and stop token.
  LocalListing(FileOps& files, Query query, std::function<Status(const CallOptions&)> may_go_on);

  /// After `unavailable` by deadline or `cancelled`, the next call goes on where this one stopped;
  /// an error of the file system ends the listing.
  Result<std::vector<ListedObject>> next_page(const CallOptions& call) override;

 private:
  struct Level {
    std::string key_prefix;  // "m/"; empty for the root.
    std::unique_ptr<Folder> folder;
  };

  Status start();
  Status advance();
  Status visit(const FolderEntry& entry);
  Status enter(std::string key_prefix);

  FileOps& files_;
  const Query query_;
  const std::function<Status(const CallOptions&)> may_go_on_;
  bool started_ = false;
  Status failure_;
  std::vector<Level> levels_;  // The folder being read, and those above it.
  std::vector<ListedObject> page_;
};

}  // namespace batchloom::objstore
