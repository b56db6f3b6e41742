// SPDX-License-Identifier: Apache-2.0
// A table of a pipeline file, read key by key. What is wrong is noted, and reading goes on with the
// default: a user learns of all faults at once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/control/pipeline_faults.h"
#include "batchloom/control/pipeline_keys.h"
#include "batchloom/control/toml_tree.h"

namespace batchloom::control {

/// What a whole number may be.
struct WholeRange {
  std::uint64_t least = 0;
  std::uint64_t most = INT64_MAX;  ///< TOML has no larger ones.
};

/// What all readers of a file write to.
struct ReadNotes {
  PipelineFaults faults;
  KeyLines lines;
};

/// Borrows table and notes. One thread at a time.
class TableReader {
 public:
  /// `path` is that of the table in pipeline_keys(); `instance` where it stands in KeyLines.
  /// Notes the lines of all keys, and refuses those that nobody knows.
  TableReader(const TomlNode& table, std::string path, std::string instance, ReadNotes& notes);

  /// Where it stands in KeyLines.
  const std::string& instance() const { return instance_; }
  bool has(std::string_view key) const { return table_.find(key) != nullptr; }

  /// Notes that a key which has no default is missing.
  void need(std::string_view key);

  /// What stands under the key, of a type that it takes; nullptr where it is missing or refused.
  /// Precondition: pipeline_keys() has the key.
  const TomlNode* find(std::string_view key);

  // The value under the key; `value` stays where it is missing or refused.
  void whole(std::string_view key, WholeRange range, std::uint64_t& value);
  void whole(std::string_view key, WholeRange range, std::uint32_t& value);
  void text(std::string_view key, std::string& value);
  void truth(std::string_view key, bool& value);
  /// "200 GiB".
  void bytes(std::string_view key, WholeRange range, std::uint64_t& value);
  /// A whole number, or the word that stands for none.
  void whole_or(std::string_view key, WholeRange range, std::string_view none,
                std::optional<std::uint64_t>& value);
  /// A whole number for each element of a list.
  void wholes(std::string_view key, WholeRange range, std::size_t most,
              std::vector<std::uint32_t>& values);
  /// One of `names`, as a value of the enumeration that has them in their order.
  template <class Enum>
  void one_of(std::string_view key, std::span<const std::string_view> names, Enum& value) {
    if (const auto place = place_of(key, names)) value = static_cast<Enum>(*place);
  }
  /// The table under the key.
  std::optional<TableReader> table(std::string_view key);

  /// Notes what is wrong with the key, or with one of its elements.
  void fault(std::string_view key, std::string_view reason);
  void fault_at(const TomlNode& node, std::string_view key, std::string_view reason);

  ReadNotes& notes() { return notes_; }

 private:
  std::optional<std::size_t> place_of(std::string_view key,
                                      std::span<const std::string_view> names);
  std::optional<std::uint64_t> whole_of(const TomlNode& node, std::string_view key,
                                        WholeRange range);
  std::string path_of(std::string_view key) const;

  const TomlNode& table_;
  std::string path_;
  std::string instance_;
  ReadNotes& notes_;
};

}  // namespace batchloom::control
