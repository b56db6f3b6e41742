// SPDX-License-Identifier: Apache-2.0
// Files and folders in memory, and what a power cut leaves of them.
//
//  1. Every change is visible at once. What survives a power cut is another matter.
//  2. A file's bytes are durable from their sync on. Otherwise a cut leaves the file empty, torn,
//     with garbage, or (by luck) whole.
//  3. A name that was made, replaced or removed is durable from the sync of its folder on. Until
//     then each name, on its own, may come back in any of the states that it has had since.
//  4. A sync that fails makes nothing durable, and no later sync makes durable what it left out,
//     though that one says ok: so do real kernels. Only a newer change of the same name can.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/base/bytes.h"
#include "batchloom/base/random.h"

namespace batchloom::objstore {

struct DiskNode;
using DiskNodePtr = std::shared_ptr<DiskNode>;

/// A file or a folder (an inode).
struct DiskNode {
  using Names = std::map<std::string, DiskNodePtr, std::less<>>;
  struct Change {
    std::string name;
    DiskNodePtr node;          // Null: removed.
    bool sync_failed = false;  // Left out by a failed sync.
  };

  explicit DiskNode(bool folder) : is_folder(folder) {}

  bool is_folder;
  bool is_locked = false;

  // Of a file.
  Bytes bytes;
  bool bytes_durable = false;
  bool sync_failed = false;

  // Of a folder.
  Names names;
  Names durable_names;
  std::vector<Change> unsynced;  // Oldest first.
};

/// The disk. Errors are errno values, 0 for none. One thread at a time.
class FakeDisk {
 public:
  /// A name in a folder, whether or not it exists.
  struct Spot {
    DiskNodePtr folder;
    std::string name;
  };

  /// Null where there is nothing of that name.
  DiskNodePtr find(std::string_view path) const;
  /// ENOENT or ENOTDIR where there is no folder above `path`.
  int locate(std::string_view path, Spot& spot) const;
  /// Null removes the name.
  void set_name(const Spot& spot, DiskNodePtr node);

  void sync_names(DiskNode& folder, bool fails);
  void sync_bytes(DiskNode& file, bool fails);

  /// Goes back to what is durable; `seed` decides where that is open. Locks are gone.
  void power_cut(std::uint64_t seed);
  std::uint64_t power_cuts() const { return power_cuts_; }

 private:
  static void lose_names(DiskNode& folder, Random& random);
  static void lose_bytes(DiskNode& file, Random& random);

  DiskNodePtr root_ = std::make_shared<DiskNode>(true);
  std::uint64_t power_cuts_ = 0;
};

}  // namespace batchloom::objstore
