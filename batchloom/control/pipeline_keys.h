// SPDX-License-Identifier: Apache-2.0
// Every key that a pipeline file may have: where it stands, what it takes, and whether it decides
// what steps contain. The parser knows no other keys than these.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/control/toml_tree.h"

namespace batchloom::control {

/// What a change of a key means for a stream that exists.
enum class KeyEffect : std::uint8_t {
  kMembership,  ///< Other steps: refused, unless it is committed as an event (membership.h).
  kFree,        ///< The same steps, faster, elsewhere or laid out otherwise: may change freely.
  kSection,     ///< A table that holds keys, and says nothing itself.
};

/// Types that a key takes.
class TomlTypes {
 public:
  constexpr TomlTypes(std::initializer_list<TomlType> types) {
    for (const TomlType type : types) bits_ |= 1U << static_cast<unsigned>(type);
  }
  constexpr bool has(TomlType type) const {
    return (bits_ >> static_cast<unsigned>(type) & 1U) != 0;
  }

 private:
  unsigned bits_ = 0;
};

struct PipelineKey {
  std::string_view path;  ///< Names from the outermost table on, with dots: "source.fields.text".
  TomlTypes types;
  KeyEffect effect;
  std::string_view what;  ///< In a few words, for messages.
  bool built = true;      ///< False: known, and refused until it is built.

  /// The last name of the path.
  std::string_view name() const { return path.substr(path.rfind('.') + 1); }
  /// The path of the table that holds it; empty for the file's own.
  std::string_view parent() const;
};

/// Parents before what they hold.
std::span<const PipelineKey> pipeline_keys();

/// nullptr if there is no such key.
const PipelineKey* find_pipeline_key(std::string_view path);

/// The names of the keys in the table at `parent`.
std::vector<std::string> names_below(std::string_view parent);

/// What stands for a name that no key in the table at `parent` has: "did you mean 'tokens'?", the
/// table that does have it, or else all names of the table.
std::string spelling_hint(std::string_view parent, std::string_view name);

}  // namespace batchloom::control
