// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/membership.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "batchloom/control/pipeline_describe.h"
#include "batchloom/control/pipeline_keys.h"
#include "batchloom/control/pipeline_text.h"
#include "batchloom/control/toml_tree.h"
#include "batchloom/planning/toml_text.h"

namespace batchloom::control {
namespace {

/// The length of the folder, its slash included, that all files lie below.
std::size_t common_folder(std::span<const FileFingerprint> files) {
  std::string_view common = files.front().path;
  for (const FileFingerprint& file : files) {
    const auto [end, unused] = std::ranges::mismatch(common, file.path);
    common = common.substr(0, static_cast<std::size_t>(end - common.begin()));
  }
  return common.rfind('/') + 1;  // 0 where there is no slash.
}

/// In quotes, and without the sign that ends a line's key.
std::string file_key(std::string_view name) {
  std::string key;
  for (const char c : planning::toml_quoted(name)) {
    c == '=' ? key += "\\u003D" : key += c;
  }
  return key;
}

void add_files(const std::string& source, std::span<const FileFingerprint> files,
               std::vector<MembershipLine>& lines) {
  const std::size_t folder = files.empty() ? 0 : common_folder(files);
  std::uint64_t bytes = 0;
  Digest order;
  for (const FileFingerprint& file : files) {
    const std::string_view name = std::string_view(file.path).substr(folder);
    bytes += file.size_bytes;
    order.add_text(name);
    lines.push_back({fmt::format("source.{}.file.{}", source, file_key(name)),
                     fmt::format("{} bytes, {:016x}", file.size_bytes, file.fingerprint)});
  }
  lines.push_back({fmt::format("source.{}.files", source),
                   fmt::format("{} file{}, {} bytes, order {:016x}", files.size(),
                               files.size() == 1 ? "" : "s", bytes, order.value())});
}

Status check_files(const SourceConfig& source, std::span<const FileFingerprint> files) {
  const bool same = std::ranges::equal(source.paths, files, {}, {}, &FileFingerprint::path);
  if (same) return Status::ok();
  return Status::invalid(
      fmt::format("membership of source '{}': fingerprints of {} files, which are not its {} files "
                  "in their order",
                  source.name, files.size(), source.paths.size()));
}

/// Of a model's file only what it holds decides, as of the files of sources.
std::string quoted_tokenizer(const TokensConfig& tokens) {
  return quoted_name(tokenizer_names(), tokens.tokenizer);
}

/// Streams older than the key have it not, and divide by number.
bool is_split_rule_silent(const PipelineConfig& config, const Setting& setting) {
  const auto source = std::ranges::find(config.sources, setting.owner, &SourceConfig::name);
  return !is_divided(*source) || source->split_by.rule == SplitRule::kNumber;
}

void add_function(const TokensConfig& tokens, std::vector<MembershipLine>& lines) {
  if (tokens.tokenizer != TokenizerKind::kPython) return;
  const TextFunction& function = tokens.function;
  lines.push_back({"tokens.tokenizer.function",
                   fmt::format("{}, {} bytes, {:016x}", planning::toml_quoted(function.name),
                               function.source_bytes, function.source_digest)});
  if (function.files.empty()) return;
  lines.push_back(
      {"tokens.tokenizer.files", fmt::format("{} file{}, {} bytes, {:016x}", function.files.size(),
                                             function.files.size() == 1 ? "" : "s",
                                             function.files_bytes, function.files_digest)});
}

void add_settings(const PipelineConfig& config, std::vector<MembershipLine>& lines) {
  for (Setting& setting : settings_of(config, {})) {
    const std::string key = setting.key_path();
    const PipelineKey* known = find_pipeline_key(key);
    if (known->effect != KeyEffect::kMembership || setting.value.empty()) continue;
    if (key == "source.name" || key == "source.files") continue;  // As lines of their own.
    if (key == "source.split_by" && is_split_rule_silent(config, setting)) continue;
    if (key == "tokens.tokenizer") setting.value = quoted_tokenizer(config.tokens);
    lines.push_back({setting.path(), std::move(setting.value)});
  }
  add_function(config.tokens, lines);
  const auto& model = config.tokens.model.content;
  if (model == nullptr) return;
  lines.push_back({"tokens.tokenizer.model",
                   fmt::format("{} bytes, {:016x}", model->size_bytes(), model->digest())});
}

std::string changed(std::string_view key, const MembershipLine* before,
                    const MembershipLine* after) {
  constexpr std::string_view kNothing = "(nothing)";
  return fmt::format("{}: {} -> {}", key, before != nullptr ? before->value : kNothing,
                     after != nullptr ? after->value : kNothing);
}

}  // namespace

Result<Membership> Membership::create(const PipelineConfig& config,
                                      std::span<const std::vector<FileFingerprint>> files) {
  if (files.size() != config.sources.size()) {
    return Status::invalid(fmt::format("membership: fingerprints of {} sources, and there are {}",
                                       files.size(), config.sources.size()));
  }
  std::vector<MembershipLine> lines;
  add_settings(config, lines);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const SourceConfig& source = config.sources[i];
    BL_RETURN_IF_ERROR(check_files(source, files[i]));
    add_files(source.name, files[i], lines);
    names.push_back(source.name);
  }
  lines.push_back({"sources", toml_list(names)});
  std::ranges::sort(lines, {}, &MembershipLine::key);
  return Membership(std::move(lines));
}

std::string Membership::text() const {
  std::string text;
  for (const auto& [key, value] : lines_) text += fmt::format("{} = {}\n", key, value);
  return text;
}

Result<std::vector<std::string>> Membership::sources() const {
  const auto line = std::ranges::lower_bound(lines_, "sources", {}, &MembershipLine::key);
  if (line == lines_.end() || line->key != "sources") {
    return Status::corruption("membership: it has no line of sources");
  }
  const Result<TomlNode> parsed = parse_toml("sources = " + line->value, "membership");
  const TomlNode* list = parsed.is_ok() ? parsed->find("sources") : nullptr;
  std::vector<std::string> names;
  for (const TomlNode& name : list != nullptr ? list->items : std::vector<TomlNode>()) {
    if (name.is(TomlType::kText)) names.push_back(name.text);
  }
  if (toml_list(names) == line->value) return names;
  return Status::corruption(fmt::format("membership: sources = {}: no list of names", line->value));
}

Hash128 Membership::digest() const {
  return xxh3_128(as_bytes(text()));
}

std::vector<std::string> differences(const Membership& before, const Membership& after,
                                     std::size_t most) {
  std::vector<std::string> told;
  std::size_t count = 0;
  const auto tell = [&](const MembershipLine* old, const MembershipLine* now) {
    if (++count <= most) told.push_back(changed(old != nullptr ? old->key : now->key, old, now));
  };
  auto old = before.lines().begin();
  auto now = after.lines().begin();
  while (old != before.lines().end() || now != after.lines().end()) {
    if (now == after.lines().end() || (old != before.lines().end() && old->key < now->key)) {
      tell(&*old++, nullptr);
    } else if (old == before.lines().end() || now->key < old->key) {
      tell(nullptr, &*now++);
    } else {
      if (old->value != now->value) tell(&*old, &*now);
      ++old;
      ++now;
    }
  }
  if (count > most) told.push_back(fmt::format("and {} more", count - most));
  return told;
}

}  // namespace batchloom::control
