// SPDX-License-Identifier: Apache-2.0
// Values of a pipeline as they stand in its file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "batchloom/control/pipeline_config.h"

namespace batchloom::control {

// All names, in the order of the values.
std::span<const std::string_view> codec_names();        ///< Of StoreCodec: raw.
std::span<const std::string_view> over_length_names();  ///< Of OverLength: split, truncate, drop.
std::span<const std::string_view> tokenizer_names();    ///< Of TokenizerKind.
std::span<const std::string_view> split_rule_names();   ///< Of SplitRule; a field's is none.
std::span<const std::string_view> loss_names();         ///< Of sources::LossOn: all, answer, mask.

/// The value's name in quotes.
template <class Enum>
std::string quoted_name(std::span<const std::string_view> names, Enum value) {
  return '"' + std::string(names[static_cast<std::size_t>(value)]) + '"';
}

/// ["a", "b"]
std::string toml_list(std::span<const std::string> texts);
/// [1, 2]
std::string toml_list(std::span<const std::uint32_t> numbers);
/// "bytes", or { kind = "sentencepiece", model = "t.model" }
std::string toml_tokenizer(const TokensConfig& tokens);
/// { image = "jpg", prompt = "q", answer = "a" }; empty where there are none.
std::string toml_fields(const SourceConfig& source);
/// "content", or { field = "author" }
std::string toml_split_by(const SplitBy& by);
/// { train = 999, valid = 1 }
std::string toml_split(const std::map<std::string, std::uint64_t>& split);

}  // namespace batchloom::control
