// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/csv_rows.h"

#include <fmt/format.h>

#include <string_view>

namespace batchloom::simulator {
namespace {

/// Of UTF-8, which some programs write before a text.
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

Status wrong_row(const ByteReader& bytes, std::uint64_t line, std::string_view why) {
  return Status::invalid(fmt::format("{}: line {}: {}", bytes.path(), line, why));
}

Status row_too_long(const ByteReader& bytes, std::uint64_t line, std::size_t most_bytes) {
  return wrong_row(bytes, line,
                   fmt::format("longer than {} bytes; is this a file of lengths?", most_bytes));
}

/// Takes one row apart.
class RowParser {
 public:
  RowParser(ByteReader& bytes, std::size_t most_bytes)
      : bytes_(bytes), most_bytes_(most_bytes), line_(bytes.line()) {}

  Result<std::optional<std::vector<std::string>>> parse() {
    while (!ended_) {
      BL_ASSIGN_OR_RETURN(const std::optional<char> c, bytes_.next());
      if (!c && size_ == 0) return std::optional<std::vector<std::string>>();
      BL_RETURN_IF_ERROR(c ? take(*c) : end_of_file());
      if (++size_ > most_bytes_) return row_too_long(bytes_, line_, most_bytes_);
    }
    return std::optional(std::move(fields_));
  }

 private:
  enum class State : std::uint8_t { kStart, kPlain, kQuoted, kAfterQuote };

  Status take(char c) {
    if (state_ == State::kQuoted) {
      if (c == '"') {
        state_ = State::kAfterQuote;
      } else {
        field_ += c;
      }
      return Status::ok();
    }
    if (c == ',') {
      end_field();
      return Status::ok();
    }
    if (c == '\n') {
      end_row();
      return Status::ok();
    }
    return take_text(c);
  }

  /// What neither separates fields nor rows, outside of quotes.
  Status take_text(char c) {
    if (c == '"' && state_ == State::kStart) {
      state_ = State::kQuoted;
    } else if (c == '"' && state_ == State::kAfterQuote) {
      field_ += c;
      state_ = State::kQuoted;
    } else if (state_ != State::kAfterQuote) {
      field_ += c;
      state_ = State::kPlain;
    } else if (c != '\r') {
      return wrong_row(bytes_, bytes_.line(),
                       "a comma or the end of the line must follow a field in quotes; a quote "
                       "within it is written twice");
    }
    return Status::ok();
  }

  Status end_of_file() {
    if (state_ == State::kQuoted) {
      return wrong_row(bytes_, line_, "a field in quotes, of the row that begins here, has no end");
    }
    end_row();
    return Status::ok();
  }

  void end_field() {
    fields_.push_back(std::move(field_));
    field_.clear();
    state_ = State::kStart;
  }

  void end_row() {
    if (state_ == State::kPlain && field_.back() == '\r') field_.pop_back();
    end_field();
    ended_ = true;
  }

  ByteReader& bytes_;
  const std::size_t most_bytes_;
  const std::uint64_t line_;
  std::size_t size_ = 0;
  State state_ = State::kStart;
  std::string field_;
  std::vector<std::string> fields_;
  bool ended_ = false;
};

}  // namespace

Result<std::optional<char>> ByteReader::next() {
  if (at_ == filled_) {
    at_ = 0;
    BL_ASSIGN_OR_RETURN(filled_, file_.read(buffer_));
    if (!begun_ && std::string_view(reinterpret_cast<const char*>(buffer_.data()), filled_)
                       .starts_with(kByteOrderMark)) {
      at_ = kByteOrderMark.size();
    }
    begun_ = true;
    if (filled_ == at_) return std::optional<char>();
  }
  const char c = static_cast<char>(buffer_[at_++]);
  if (c == '\n') ++line_;
  return std::optional(c);
}

Result<std::optional<std::string>> next_line(ByteReader& bytes, std::size_t most_bytes) {
  const std::uint64_t line = bytes.line();
  std::string text;
  while (true) {
    BL_ASSIGN_OR_RETURN(const std::optional<char> c, bytes.next());
    if (!c && text.empty()) return std::optional<std::string>();
    if (!c || *c == '\n') return std::optional(std::move(text));
    if (text.size() == most_bytes) return row_too_long(bytes, line, most_bytes);
    text += *c;
  }
}

Result<std::optional<std::vector<std::string>>> next_row(ByteReader& bytes,
                                                         std::size_t most_bytes) {
  return RowParser(bytes, most_bytes).parse();
}

}  // namespace batchloom::simulator
