// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace batchloom::sources {

/// A byte order mark, which a text may begin with; it belongs to no record.
inline constexpr std::string_view kUtf8Mark = "\xef\xbb\xbf";

bool is_utf8(std::string_view text);

/// What else than UTF-8 a text is that begins with `start`, of which four bytes are looked at:
/// "UTF-16", "UTF-32", "gzip" or "zstd"; empty where nothing says so. Without a mark, UTF-16 and
/// UTF-32 are known by two characters of ASCII at the begin.
std::string_view foreign_encoding(std::string_view start);

/// Without a mark at the begin.
std::string_view without_mark(std::string_view text);

/// Nullopt, or why a text that is to be a record as a whole is none: "not valid UTF-8".
std::optional<std::string> text_fault(std::string_view text);

}  // namespace batchloom::sources
