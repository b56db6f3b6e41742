// SPDX-License-Identifier: Apache-2.0
// A pipeline as it was understood: every setting, whether a file says it or not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "batchloom/control/pipeline_toml.h"

namespace batchloom::control {

enum class SettingOrigin : std::uint8_t {
  kSet,      ///< The file says it.
  kDefault,  ///< The file does not say it.
  kAbsent,   ///< Nor has it a value: the note says what that means.
};
/// "set", "default" or "absent".
std::string_view to_string(SettingOrigin origin);

struct Setting {
  std::string section;  ///< The table's name, as "store" or "source"; empty: the file's own.
  std::string owner;    ///< Of a source: its name.
  std::string key;      ///< In its table: "lead_steps".
  std::string value;    ///< In TOML; empty where there is none.
  SettingOrigin origin = SettingOrigin::kDefault;
  std::string note;

  /// As messages and membership call it: "store.lead_steps", "source.docs.weight".
  std::string path() const;
  /// The path of its key in pipeline_keys(): "source.weight".
  std::string key_path() const;
};

/// Table by table, in the order of pipeline_keys(); sources in theirs. An inline table is one
/// setting. `lines` has what is said.
std::vector<Setting> settings_of(const PipelineConfig& config, const KeyLines& lines);

/// Settings as a pipeline file, of which parse_pipeline() makes the same config. What the file did
/// not say has "# default" behind it; what has no value is a comment.
std::string describe(const PipelineFile& pipeline);

}  // namespace batchloom::control
