// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/pipeline_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batchloom/planning/toml_text.h"

namespace batchloom::control {
namespace {

constexpr std::size_t kFaultsTold = 20;
constexpr std::size_t kFaultBytes = 500;
constexpr std::size_t kShownBytes = 80;

/// At most so many bytes, and no half of a character of UTF-8.
std::string_view beginning(std::string_view text, std::size_t bytes) {
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80) --bytes;
  return text.substr(0, bytes);
}

}  // namespace

std::string source_path(std::size_t source) {
  return fmt::format("source[{}]", source);
}

std::uint32_t line_of(const KeyLines& lines, std::string_view path) {
  while (true) {
    const auto found = lines.find(path);
    if (found != lines.end()) return found->second;
    const std::size_t dot = path.rfind('.');
    if (dot == std::string_view::npos) return 1;
    path = path.substr(0, dot);
  }
}

std::string shown(std::string_view text) {
  if (text.size() <= kShownBytes) return planning::toml_quoted(text);
  return fmt::format("{}... ({} bytes)", planning::toml_quoted(beginning(text, kShownBytes)),
                     text.size());
}

void PipelineFaults::add(std::uint32_t line, std::string text) {
  if (text.size() > kFaultBytes) {
    text = fmt::format("{}...", beginning(text, kFaultBytes));
  }
  faults_.push_back({line, std::move(text)});
}

Status PipelineFaults::to_status(std::string_view file) const {
  if (faults_.empty()) return Status::ok();
  std::vector<Fault> sorted = faults_;
  std::ranges::stable_sort(sorted, {}, &Fault::line);
  if (sorted.size() == 1) {
    return Status::invalid(fmt::format("{}: line {}: {}", file, sorted[0].line, sorted[0].text));
  }
  std::string text = fmt::format("{}: {} faults", file, sorted.size());
  for (std::size_t i = 0; i < std::min(sorted.size(), kFaultsTold); ++i) {
    text += fmt::format("\n  line {}: {}", sorted[i].line, sorted[i].text);
  }
  if (sorted.size() > kFaultsTold) {
    text += fmt::format("\n  and {} more", sorted.size() - kFaultsTold);
  }
  return Status::invalid(std::move(text));
}

}  // namespace batchloom::control
