// SPDX-License-Identifier: Apache-2.0
// How troubles are written: "crash:0", "suspension:2", "rival:1", "put:17" (the 17th put that all
// clients issue).
#include <fmt/format.h>

#include <charconv>

#include "batchloom/simulator/store_sim.h"

namespace batchloom::simulator {

std::string_view to_string(Trouble::Kind kind) {
  switch (kind) {
    case Trouble::Kind::kCrash: return "crash";
    case Trouble::Kind::kSuspension: return "suspension";
    case Trouble::Kind::kRival: return "rival";
    case Trouble::Kind::kNetwork: return "network";
  }
  return "";
}

namespace {

std::string to_string(const Trouble& trouble) {
  if (trouble.kind == Trouble::Kind::kNetwork) {
    return fmt::format("{}:{}", objstore::to_string(trouble.call.operation), trouble.call.ordinal);
  }
  return fmt::format("{}:{}", to_string(trouble.kind), trouble.ordinal);
}

std::optional<Trouble> parse_trouble(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view name = text.substr(0, colon);
  const char* const end = text.data() + text.size();
  std::uint64_t ordinal = 0;
  const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, ordinal);
  if (error != std::errc() || rest != end) return std::nullopt;
  for (const Trouble::Kind kind :
       {Trouble::Kind::kCrash, Trouble::Kind::kSuspension, Trouble::Kind::kRival}) {
    if (name == to_string(kind)) return Trouble{.kind = kind, .ordinal = ordinal, .call = {}};
  }
  for (const objstore::Operation operation : objstore::kAllOperations) {
    if (name != objstore::to_string(operation)) continue;
    return Trouble{.kind = Trouble::Kind::kNetwork, .ordinal = 0, .call = {operation, ordinal}};
  }
  return std::nullopt;
}

}  // namespace

std::string to_string(const std::vector<Trouble>& troubles) {
  std::string text;
  for (const Trouble& trouble : troubles)
    text.append(text.empty() ? "" : ",").append(to_string(trouble));
  return text;
}

Result<std::vector<Trouble>> parse_troubles(std::string_view text) {
  std::vector<Trouble> troubles;
  for (bool more = !text.empty(); more;) {
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const auto trouble = parse_trouble(part);
    if (!trouble) {
      return Status::invalid(
          fmt::format("'{}' is no fault; write crash:N, suspension:N, rival:N, or get:N, head:N, "
                      "put:N, list:N, remove:N",
                      part));
    }
    troubles.push_back(*trouble);
    more = comma != std::string_view::npos;
    if (more) text.remove_prefix(comma + 1);
  }
  return troubles;
}

}  // namespace batchloom::simulator
