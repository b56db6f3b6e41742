// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/length_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "batchloom/simulator/csv_rows.h"
#include "batchloom/simulator/input_file.h"
#include "batchloom/sources/byte_reader.h"
#include "batchloom/sources/decoder.h"
#include "batchloom/sources/jsonl_file.h"
#include "batchloom/sources/megatron_index.h"
#include "batchloom/sources/parquet_reader.h"
#include "batchloom/sources/tar_reader.h"

namespace batchloom::simulator {
namespace {

constexpr std::size_t kQuotedMax = 40;  ///< Of a value that a message repeats.

std::string_view without_spaces(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r";
  text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
  return text.substr(0, text.find_last_not_of(kSpaces) + 1);
}

std::string quoted(std::string_view text) {
  std::string shown;
  for (const char c : text.substr(0, kQuotedMax)) {
    const bool printable = c >= ' ' && c <= '~';
    shown +=
        printable ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return fmt::format("'{}{}'", shown, text.size() > kQuotedMax ? "..." : "");
}

/// Of all digits, with a sign or not.
bool is_number(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// What is wrong with a text that is no length.
std::string_view fault_of(std::string_view text) {
  if (!is_number(text)) return "is no number";
  if (text.front() == '+') return "has a sign";
  if (text.find_first_not_of('0') == std::string_view::npos) return "is no length";
  return text.front() == '-' ? "is negative" : "is too large";
}

/// The error says what was found; the caller knows where.
Result<std::uint32_t> parse_length(std::string_view text) {
  constexpr std::string_view kExpected =
      "a length is a whole number of tokens, from 1 to 4294967295";
  text = without_spaces(text);
  std::uint32_t length = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, length);
  if (error == std::errc() && rest == end && length > 0) return length;
  if (text.empty()) return Status::invalid(fmt::format("nothing stands here; {}", kExpected));
  return Status::invalid(fmt::format("{} {}; {}", quoted(text), fault_of(text), kExpected));
}

/// Lengths as they are found.
class LengthList {
 public:
  explicit LengthList(std::string path) : path_(std::move(path)) {}

  Status add(std::string_view text, std::uint64_t line) {
    const Result<std::uint32_t> length = parse_length(text);
    if (!length.is_ok())
      return length.status().with_context(fmt::format("{}: line {}", path_, line));
    return add(*length);
  }
  Status add(std::uint32_t length) {
    if (lengths_.size() == kFileLengthsMax) {
      return Status::invalid(
          fmt::format("{}: more than the {} lengths that can be read", path_, kFileLengthsMax));
    }
    lengths_.push_back(length);
    return Status::ok();
  }
  Result<std::vector<std::uint32_t>> finish(std::string_view expected) && {
    if (!lengths_.empty()) return std::move(lengths_);
    return Status::invalid(fmt::format("{}: no lengths in it; expected {}", path_, expected));
  }

 private:
  std::string path_;
  std::vector<std::uint32_t> lengths_;
};

Result<std::vector<std::uint32_t>> read_text(InputFile file) {
  LengthList lengths(file.path());
  ByteReader bytes(std::move(file));
  while (true) {
    const std::uint64_t line = bytes.line();
    BL_ASSIGN_OR_RETURN(const auto text, next_line(bytes, kRowMaxBytes));
    if (!text) return std::move(lengths).finish("a whole number of tokens on each line");
    if (without_spaces(*text).empty()) continue;
    BL_RETURN_IF_ERROR(lengths.add(*text, line));
  }
}

using Row = std::vector<std::string>;

/// A column of a CSV file.
class ColumnReader {
 public:
  ColumnReader(InputFile file, const std::string& column)
      : column_(column), lengths_(file.path()), bytes_(std::move(file)) {}

  Result<std::vector<std::uint32_t>> read() {
    while (true) {
      const std::uint64_t line = bytes_.line();
      BL_ASSIGN_OR_RETURN(const std::optional<Row> row, next_row(bytes_, kRowMaxBytes));
      if (!row) return std::move(lengths_).finish("rows of comma-separated fields below a heading");
      if (row->size() == 1 && without_spaces(row->front()).empty()) continue;
      if (!place_) {
        BL_ASSIGN_OR_RETURN(const bool heading, find_place(*row, line));
        if (heading) continue;
      }
      if (*place_ >= row->size()) return missing_field(*row, line);
      BL_RETURN_IF_ERROR(lengths_.add((*row)[*place_], line));
    }
  }

 private:
  /// Whether the first row is a heading.
  Result<bool> find_place(const Row& row, std::uint64_t line) {
    if (column_.empty() && row.size() > 1) {
      return wrong(line, fmt::format("there are {} columns ({}); say which has the lengths",
                                     row.size(), fmt::join(shown(row), ", ")));
    }
    std::size_t number = 1;
    const auto parsed = std::from_chars(column_.data(), column_.data() + column_.size(), number);
    if (column_.empty() ||
        (parsed.ec == std::errc() && number > 0 && parsed.ptr == column_.data() + column_.size())) {
      place_ = number - 1;
      if (*place_ >= row.size()) return missing_field(row, line);
      return !is_number(without_spaces(row[*place_]));
    }
    return find_name(row, line);
  }

  /// True, since the row has the name.
  Result<bool> find_name(const Row& row, std::uint64_t line) {
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (without_spaces(row[i]) == column_) numbers.push_back(i + 1);
    }
    if (numbers.empty()) {
      return wrong(line, fmt::format("no column is called {}; there are {}", quoted(column_),
                                     fmt::join(shown(row), ", ")));
    }
    if (numbers.size() > 1) {
      return wrong(line, fmt::format("{} columns are called {} (columns {} and {}{}); ask for "
                                     "one by its number",
                                     numbers.size(), quoted(column_), numbers[0], numbers[1],
                                     numbers.size() > 2 ? ", ..." : ""));
    }
    place_ = numbers.front() - 1;
    return true;
  }

  static std::vector<std::string> shown(const Row& row) {
    constexpr std::size_t kNamesMax = 20;
    std::vector<std::string> names;
    for (const std::string& name : row) {
      if (names.size() == kNamesMax) {
        names.push_back(fmt::format("and {} more", row.size() - kNamesMax));
        break;
      }
      names.push_back(quoted(without_spaces(name)));
    }
    return names;
  }

  Status missing_field(const Row& row, std::uint64_t line) const {
    return wrong(line,
                 fmt::format("{} fields; the lengths are in column {}", row.size(), *place_ + 1));
  }
  Status wrong(std::uint64_t line, std::string_view why) const {
    return Status::invalid(fmt::format("{}: line {}: {}", bytes_.path(), line, why));
  }

  const std::string& column_;
  LengthList lengths_;
  ByteReader bytes_;
  std::optional<std::size_t> place_;
};

Result<std::vector<std::uint32_t>> read_documents(const std::string& path) {
  BL_ASSIGN_OR_RETURN(auto file, sources::open_file(path));
  BL_ASSIGN_OR_RETURN(auto index, sources::MegatronIndex::open(std::move(file), {}));
  LengthList lengths(path);
  std::uint64_t number = 0;
  BL_RETURN_IF_ERROR(index.scan({}, [&](const sources::MegatronDocument& document) {
    if (document.tokens > std::numeric_limits<std::uint32_t>::max()) {
      return Status::invalid(
          fmt::format("{}: document {} has {} tokens; expected at most 4294967295", path, number,
                      document.tokens));
    }
    ++number;
    if (document.tokens == 0) return Status::ok();  // As with records.
    return lengths.add(static_cast<std::uint32_t>(document.tokens));
  }));
  return std::move(lengths).finish("at least one document with tokens");
}

/// A path with its capitals made small, for its ending.
std::string lower_case(std::string path) {
  for (char& c : path) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return path;
}

Result<std::unique_ptr<sources::ShardReader>> open_records(const LengthFile& file) {
  BL_ASSIGN_OR_RETURN(auto bytes, sources::open_file(file.path));
  sources::CompressibleFile content{.bytes = std::move(bytes),
                                    .compression = sources::compression_of(lower_case(file.path))};
  const auto format = record_format(file.path);
  if (format == RecordFormat::kParquet) {
    return sources::open_parquet(std::move(content.bytes), {.fields = file.fields}, *file.tokenizer,
                                 {});
  }
  if (format == RecordFormat::kTar) {
    return sources::open_tar_file(std::move(content), {.fields = file.fields}, *file.tokenizer, {});
  }
  return sources::open_jsonl_file(std::move(content), {.fields = file.fields}, *file.tokenizer, {});
}

Result<std::vector<std::uint32_t>> read_records(const LengthFile& file, RecordFormat format) {
  if (file.tokenizer == nullptr) {
    return Status::invalid(
        fmt::format("{}: a record of {} has a length once it is tokenized; say who does", file.path,
                    to_string(format)));
  }
  BL_ASSIGN_OR_RETURN(const auto reader, open_records(file));
  LengthList lengths(file.path);
  sources::RecordSize size;
  for (std::uint64_t record = 0; record < reader->records(); ++record) {
    BL_ASSIGN_OR_RETURN(const auto bad, reader->measure(record, {}, size));
    if (bad) return Status::invalid(bad->message);
    if (size.tokens > 0) BL_RETURN_IF_ERROR(lengths.add(size.tokens));
  }
  return std::move(lengths).finish(fmt::format("records of {} with tokens", to_string(format)));
}

Status not_yet(const std::string& path, std::string_view kind) {
  return Status::invalid(fmt::format(
      "{}: {} files cannot be read yet; write the lengths as text, a whole number on each line, or "
      "as a column of CSV",
      path, kind));
}

}  // namespace

std::string_view to_string(RecordFormat format) {
  switch (format) {
    case RecordFormat::kJsonLines: return "JSON Lines";
    case RecordFormat::kTar: return "tars";
    case RecordFormat::kParquet: return "Parquet files";
  }
  return "unknown";
}

std::optional<RecordFormat> record_format(const std::string& path) {
  const std::string name = lower_case(path);
  if (name.ends_with(".parquet")) return RecordFormat::kParquet;
  for (const std::string_view compression : {"", ".gz", ".zst"}) {
    if (!name.ends_with(compression)) continue;
    const std::string_view plain =
        std::string_view(name).substr(0, name.size() - compression.size());
    if (plain.ends_with(".jsonl")) return RecordFormat::kJsonLines;
    if (plain.ends_with(".tar")) return RecordFormat::kTar;
  }
  return std::nullopt;
}

Result<std::vector<std::uint32_t>> read_lengths(const LengthFile& file) {
  const std::string path = lower_case(file.path);
  if (path.ends_with(".json")) return not_yet(file.path, "such JSON");
  const bool is_csv = path.ends_with(".csv");
  if (!is_csv && !file.column.empty()) {
    return Status::invalid(fmt::format(
        "{}: a column was asked for ('{}'), and only .csv files have columns", path, file.column));
  }
  if (path.ends_with(".idx")) return read_documents(file.path);
  if (const auto format = record_format(path)) return read_records(file, *format);
  BL_ASSIGN_OR_RETURN(InputFile input, InputFile::open(file.path));
  if (is_csv) return ColumnReader(std::move(input), file.column).read();
  return read_text(std::move(input));
}

}  // namespace batchloom::simulator
