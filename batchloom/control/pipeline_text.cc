// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/pipeline_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <variant>
#include <vector>

#include "batchloom/planning/toml_text.h"

namespace batchloom::control {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::array kCodecNames = {"raw"sv};
constexpr std::array kOverLengthNames = {"split"sv, "truncate"sv, "drop"sv};
constexpr std::array kTokenizerNames = {"bytes"sv, "ids"sv, "sentencepiece"sv, "python"sv};
constexpr std::array kSplitRuleNames = {"content"sv, "field"sv, "number"sv};
constexpr std::array kLossNames = {"all"sv, "answer"sv, "mask"sv};

}  // namespace

std::span<const std::string_view> codec_names() {
  return kCodecNames;
}

std::span<const std::string_view> over_length_names() {
  return kOverLengthNames;
}

std::span<const std::string_view> tokenizer_names() {
  return kTokenizerNames;
}

std::span<const std::string_view> split_rule_names() {
  return kSplitRuleNames;
}

std::span<const std::string_view> loss_names() {
  return kLossNames;
}

std::string toml_list(std::span<const std::string> texts) {
  std::vector<std::string> quoted;
  for (const std::string& text : texts) quoted.push_back(planning::toml_quoted(text));
  return fmt::format("[{}]", fmt::join(quoted, ", "));
}

std::string toml_list(std::span<const std::uint32_t> numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ", "));
}

std::string toml_tokenizer(const TokensConfig& tokens) {
  std::string kind = quoted_name(tokenizer_names(), tokens.tokenizer);
  if (tokens.tokenizer == TokenizerKind::kPython) {
    const TextFunction& function = tokens.function;
    return fmt::format("{{ kind = {}, function = {}{} }}", kind,
                       planning::toml_quoted(function.name),
                       function.files.empty() ? "" : ", files = " + toml_list(function.files));
  }
  if (tokens.tokenizer != TokenizerKind::kSentencePiece) return kind;
  return fmt::format("{{ kind = {}, model = {} }}", kind, planning::toml_quoted(tokens.model.file));
}

std::string toml_fields(const SourceConfig& source) {
  const std::optional<sources::RecordFields>& fields = source.fields;
  if (!fields) return {};
  std::vector<std::string> texts;
  const auto add = [&](std::string_view key, const std::string& name) {
    if (!name.empty()) texts.push_back(fmt::format("{} = {}", key, planning::toml_quoted(name)));
  };
  add("image", source.picture);
  if (const auto* text = std::get_if<sources::TextField>(&*fields)) add("text", text->text);
  if (const auto* pair = std::get_if<sources::AnswerFields>(&*fields)) {
    add("prompt", pair->prompt);
    add("answer", pair->answer);
  }
  if (const auto* tokens = std::get_if<sources::TokenFields>(&*fields)) {
    add("tokens", tokens->tokens);
    add("loss_mask", tokens->loss_mask);
  }
  return fmt::format("{{ {} }}", fmt::join(texts, ", "));
}

std::string toml_split_by(const SplitBy& by) {
  if (by.rule != SplitRule::kField) return quoted_name(split_rule_names(), by.rule);
  return fmt::format("{{ field = {} }}", planning::toml_quoted(by.field));
}

std::string toml_split(const std::map<std::string, std::uint64_t>& split) {
  std::vector<std::string> texts;
  for (const auto& [name, share] : split) texts.push_back(fmt::format("{} = {}", name, share));
  return fmt::format("{{ {} }}", fmt::join(texts, ", "));
}

}  // namespace batchloom::control
