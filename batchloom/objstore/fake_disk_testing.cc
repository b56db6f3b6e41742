// SPDX-License-Identifier: Apache-2.0
#include "batchloom/objstore/fake_disk_testing.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

namespace batchloom::objstore {

DiskNodePtr FakeDisk::find(std::string_view path) const {
  DiskNodePtr node = root_;
  while (node != nullptr && !path.empty()) {
    const std::string_view name = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(path.size(), name.size() + 1));
    if (name.empty()) continue;
    const auto found = node->names.find(name);
    node = found == node->names.end() ? nullptr : found->second;
  }
  return node;
}

int FakeDisk::locate(std::string_view path, Spot& spot) const {
  const std::size_t slash = path.rfind('/');
  const std::string_view above = path.substr(0, slash == path.npos ? 0 : slash);
  spot.folder = find(above);
  spot.name = path.substr(slash + 1);
  if (spot.folder == nullptr) return ENOENT;
  return spot.folder->is_folder ? 0 : ENOTDIR;
}

void FakeDisk::set_name(const Spot& spot, DiskNodePtr node) {
  if (node == nullptr) {
    spot.folder->names.erase(spot.name);
  } else {
    spot.folder->names[spot.name] = node;
  }
  spot.folder->unsynced.push_back({.name = spot.name, .node = std::move(node)});
}

void FakeDisk::sync_names(DiskNode& folder, bool fails) {
  if (fails) {
    for (DiskNode::Change& change : folder.unsynced) change.sync_failed = true;
    return;
  }
  std::set<std::string> synced;  // Names whose newest change no failed sync has left out.
  for (const DiskNode::Change& change : folder.unsynced) {
    if (change.sync_failed) continue;
    synced.insert(change.name);
    if (change.node == nullptr) {
      folder.durable_names.erase(change.name);
    } else {
      folder.durable_names[change.name] = change.node;
    }
  }
  std::erase_if(folder.unsynced, [&](const auto& change) { return synced.contains(change.name); });
}

void FakeDisk::sync_bytes(DiskNode& file, bool fails) {
  file.sync_failed = file.sync_failed || fails;
  file.bytes_durable = !file.sync_failed;
}

void FakeDisk::power_cut(std::uint64_t seed) {
  Random random(seed);
  lose_names(*root_, random);
  ++power_cuts_;
}

void FakeDisk::lose_names(DiskNode& folder, Random& random) {
  std::map<std::string, std::vector<DiskNodePtr>> states;  // Of each name that is in the balance.
  for (const DiskNode::Change& change : folder.unsynced) {
    auto& of_name = states[change.name];
    if (of_name.empty()) {
      const auto durable = folder.durable_names.find(change.name);
      of_name.push_back(durable == folder.durable_names.end() ? nullptr : durable->second);
    }
    of_name.push_back(change.node);
  }
  for (const auto& [name, of_name] : states) {
    const DiskNodePtr& state = of_name[random.below(of_name.size())];
    if (state == nullptr) {
      folder.durable_names.erase(name);
    } else {
      folder.durable_names[name] = state;
    }
  }
  folder.unsynced.clear();
  folder.names = folder.durable_names;
  for (const auto& [name, node] : folder.names) {
    node->is_locked = false;
    if (node->is_folder) {
      lose_names(*node, random);
    } else {
      lose_bytes(*node, random);
    }
  }
}

void FakeDisk::lose_bytes(DiskNode& file, Random& random) {
  if (std::exchange(file.bytes_durable, true)) return;
  file.sync_failed = false;
  Bytes& bytes = file.bytes;
  switch (random.below(4)) {
    case 0: bytes.clear(); break;
    case 1: bytes.resize(random.below(bytes.size() + 1)); break;
    case 2:  // Blocks that were allocated and never written hold anything.
      for (std::size_t i = random.below(bytes.size() + 1); i < bytes.size(); ++i) {
        bytes[i] = static_cast<std::byte>(random.below(256));
      }
      break;
    default: break;
  }
}

}  // namespace batchloom::objstore
