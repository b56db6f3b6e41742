// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/jsonl_parser.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>
#include <vector>

#include "batchloom/sources/record_ids.h"

namespace batchloom::sources {
namespace {

namespace ondemand = simdjson::ondemand;

static_assert(JsonlParser::kPaddingBytes >= simdjson::SIMDJSON_PADDING);

constexpr std::size_t kQuotedBytes = 40;  ///< Of a value or a name that a message repeats.
constexpr std::size_t kLeastCapacity = 64 << 10;

using Fault = std::optional<JsonlFault>;

Fault fault_of(simdjson::error_code error) {
  switch (error) {
    case simdjson::UTF8_ERROR: return JsonlFault{BadRecordReason::kEncoding, "not valid UTF-8"};
    case simdjson::STRING_ERROR:
      return JsonlFault{BadRecordReason::kEncoding, "a string has an escape that is no character"};
    case simdjson::EMPTY: return JsonlFault{BadRecordReason::kSyntax, "nothing in it"};
    case simdjson::UNESCAPED_CHARS:
      return JsonlFault{BadRecordReason::kSyntax, "a string has a control character in it"};
    case simdjson::UNCLOSED_STRING:
      return JsonlFault{BadRecordReason::kSyntax, "a string has no end"};
    default:
      return JsonlFault{BadRecordReason::kSyntax,
                        fmt::format("no JSON: {}", simdjson::error_message(error))};
  }
}

/// Printable and short.
std::string shown(std::string_view text) {
  std::string result;
  for (const char c : text.substr(0, kQuotedBytes)) {
    if (c >= ' ' && c <= '~') {
      result += c;
    } else {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return text.size() > kQuotedBytes ? result + "..." : result;
}

std::string_view name_of(ondemand::json_type type) {
  switch (type) {
    case ondemand::json_type::array: return "a list";
    case ondemand::json_type::object: return "an object";
    case ondemand::json_type::number: return "a number";
    case ondemand::json_type::string: return "a string";
    case ondemand::json_type::boolean: return "true or false";
    case ondemand::json_type::null: return "null";
  }
  return "unknown";
}

JsonlFault wrong_type(std::string_view field, ondemand::json_type found,
                      std::string_view expected) {
  return {BadRecordReason::kField,
          fmt::format("field '{}' is {}; expected {}", shown(field), name_of(found), expected)};
}

/// A number as RFC 8259 writes it: simdjson looks only at those that it is asked to convert.
bool is_number(std::string_view token) {
  const auto skip_digits = [&] {
    const std::size_t digits = std::min(token.find_first_not_of("0123456789"), token.size());
    token.remove_prefix(digits);
    return digits > 0;
  };
  if (token.starts_with('-')) token.remove_prefix(1);
  if (token.starts_with('0')) {
    token.remove_prefix(1);
  } else if (!skip_digits()) {
    return false;
  }
  if (token.starts_with('.')) {
    token.remove_prefix(1);
    if (!skip_digits()) return false;
  }
  if (token.starts_with('e') || token.starts_with('E')) {
    token.remove_prefix(1);
    if (token.starts_with('-') || token.starts_with('+')) token.remove_prefix(1);
    if (!skip_digits()) return false;
  }
  return token.empty();
}

/// Without what may stand behind it.
std::string_view token_text(std::string_view token) {
  return token.substr(0, token.find_last_not_of(" \t\r\n") + 1);
}

/// A number as the line has it.
std::string_view token_of(ondemand::value value) {
  return token_text(value.raw_json_token());
}

Fault check_value(ondemand::value value, int depth);

Fault check_list(ondemand::value value, int depth) {
  ondemand::array list;
  if (const auto error = value.get_array().get(list)) return fault_of(error);
  for (auto element : list) {
    ondemand::value inner;
    if (const auto error = element.get(inner)) return fault_of(error);
    if (Fault fault = check_value(inner, depth)) return fault;
  }
  return std::nullopt;
}

Fault check_object(ondemand::value value, int depth) {
  ondemand::object object;
  if (const auto error = value.get_object().get(object)) return fault_of(error);
  for (auto field : object) {
    std::string_view key;
    if (const auto error = field.unescaped_key().get(key)) return fault_of(error);
    ondemand::value inner;
    if (const auto error = field.value().get(inner)) return fault_of(error);
    if (Fault fault = check_value(inner, depth)) return fault;
  }
  return std::nullopt;
}

/// A value that nobody asks for must be right all the same: simdjson would step over it unseen.
Fault check_value(ondemand::value value, int depth) {
  if (depth > JsonlParser::kMaxDepth) {
    return JsonlFault{BadRecordReason::kSyntax,
                      fmt::format("nested deeper than {} levels", JsonlParser::kMaxDepth)};
  }
  ondemand::json_type type{};
  if (const auto error = value.type().get(type)) return fault_of(error);
  switch (type) {
    case ondemand::json_type::array: return check_list(value, depth + 1);
    case ondemand::json_type::object: return check_object(value, depth + 1);
    case ondemand::json_type::number:
      if (is_number(token_of(value))) return std::nullopt;
      return fault_of(simdjson::NUMBER_ERROR);
    case ondemand::json_type::string: {
      std::string_view text;
      const auto error = value.get_string().get(text);
      return error ? fault_of(error) : std::nullopt;
    }
    case ondemand::json_type::boolean: {
      bool truth = false;
      const auto error = value.get_bool().get(truth);
      return error ? fault_of(error) : std::nullopt;
    }
    case ondemand::json_type::null: {
      bool null = false;
      const auto error = value.is_null().get(null);
      return error ? fault_of(error) : std::nullopt;
    }
  }
  return fault_of(simdjson::TAPE_ERROR);
}

}  // namespace

class JsonlParser::Simdjson {
 public:
  Simdjson(const RecordFields& fields, LossOn loss_on, std::uint32_t vocab) : vocab_(vocab) {
    if (const auto* text = std::get_if<TextField>(&fields)) {
      names_ = {text->text, {}};
    } else if (const auto* answer = std::get_if<AnswerFields>(&fields)) {
      names_ = {answer->prompt, answer->answer};
    } else {
      const auto& tokens = std::get<TokenFields>(fields);
      holds_ids_ = true;
      names_ = {tokens.tokens, loss_on == LossOn::kMask ? tokens.loss_mask : std::string_view()};
    }
  }

  Result<Fault> parse(std::string_view line, RecordTexts& texts, Record& out) {
    BL_RETURN_IF_ERROR(reserve_for(line));
    return parse_object(line, texts, out);
  }

  Result<Fault> parse_list(std::string_view text, Record& out) {
    BL_RETURN_IF_ERROR(reserve_for(text));
    return parse_whole_list(text, out);
  }

  void shrink() {
    if (parser_ != nullptr && parser_->capacity() > kKeptBytes / 8) parser_ = nullptr;
  }

 private:
  /// How much memory a host has must not decide which records are bad.
  Status reserve_for(std::string_view line) {
    if (reserve(line.size()) == simdjson::SUCCESS) return Status::ok();
    return Status::exhausted(fmt::format("no memory to parse a line of {} bytes", line.size()));
  }

  Fault parse_whole_list(std::string_view text, Record& out) {
    ondemand::document document;
    const simdjson::padded_string_view padded(text, text.size() + kPaddingBytes);
    if (const auto error = parser_->iterate(padded).get(document)) return fault_of(error);
    ondemand::json_type type{};
    if (const auto error = document.type().get(type)) return fault_of(error);
    const std::size_t which = names_[0].empty() ? 1 : 0;
    if (type != ondemand::json_type::array) return wrong_type(names_[which], type, "a list");
    // The parser looks for the end of an object only.
    if (!token_text(text).ends_with(']')) {
      return JsonlFault{BadRecordReason::kSyntax,
                        "no list alone: it has no end, or something follows it"};
    }
    ondemand::value value;
    if (const auto error = document.get_value().get(value)) return fault_of(error);
    if (Fault fault = which == 0 ? take_ids(value, out) : take_mask(value, out)) return fault;
    if (document.current_location().error() == simdjson::OUT_OF_BOUNDS) return std::nullopt;
    return JsonlFault{BadRecordReason::kSyntax, "no list alone: something follows it"};
  }

  Fault parse_object(std::string_view line, RecordTexts& texts, Record& out) {
    ondemand::document document;
    const simdjson::padded_string_view padded(line, line.size() + kPaddingBytes);
    if (const auto error = parser_->iterate(padded).get(document)) return fault_of(error);
    ondemand::json_type type{};
    if (const auto error = document.type().get(type)) return fault_of(error);
    if (type != ondemand::json_type::object) {
      return JsonlFault{BadRecordReason::kSyntax,
                        fmt::format("{}; expected an object", name_of(type))};
    }
    ondemand::object object;
    if (const auto error = document.get_object().get(object)) return fault_of(error);
    if (Fault fault = take_fields(object, texts, out)) return fault;
    if (document.current_location().error() == simdjson::OUT_OF_BOUNDS) return std::nullopt;
    return JsonlFault{BadRecordReason::kSyntax, "something follows the object"};
  }

  /// simdjson itself would allocate anew for every line that is a little longer.
  simdjson::error_code reserve(std::size_t size) {
    if (parser_ == nullptr) parser_ = std::make_unique<ondemand::parser>();
    if (parser_->capacity() >= size) return simdjson::SUCCESS;
    const std::size_t little_more = size < kKeptBytes ? std::bit_ceil(size) : size;
    return parser_->allocate(std::max(little_more, kLeastCapacity));
  }

  Fault take_fields(ondemand::object& object, RecordTexts& texts, Record& out) {
    std::array<bool, 2> seen{};
    for (auto field : object) {
      std::string_view key;
      if (const auto error = field.unescaped_key().get(key)) return fault_of(error);
      ondemand::value value;
      if (const auto error = field.value().get(value)) return fault_of(error);
      const auto which = static_cast<std::size_t>(std::ranges::find(names_, key) - names_.begin());
      if (key.empty() || which == names_.size()) {
        if (Fault fault = check_value(value, 1)) return fault;
        continue;
      }
      if (std::exchange(seen[which], true)) {
        return JsonlFault{BadRecordReason::kField,
                          fmt::format("field '{}' is there twice", shown(key))};
      }
      if (Fault fault = take(which, value, texts, out)) return fault;
    }
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (seen[i] || names_[i].empty()) continue;
      return JsonlFault{BadRecordReason::kField,
                        fmt::format("field '{}' is missing", shown(names_[i]))};
    }
    return std::nullopt;
  }

  Fault take(std::size_t which, ondemand::value value, RecordTexts& texts, Record& out) {
    if (!holds_ids_) return take_text(which, value, which == 0 ? texts.text : texts.answer);
    return which == 0 ? take_ids(value, out) : take_mask(value, out);
  }

  Fault take_text(std::size_t which, ondemand::value value, std::string_view& text) const {
    ondemand::json_type type{};
    if (const auto error = value.type().get(type)) return fault_of(error);
    if (type != ondemand::json_type::string) {
      // One that is none of JSON's values is a matter of syntax.
      if (Fault fault = check_value(value, 1)) return fault;
      return wrong_type(names_[which], type, "a string");
    }
    const auto error = value.get_string().get(text);
    return error ? fault_of(error) : std::nullopt;
  }

  /// Calls `take_one(place, element, its type)` for each element.
  template <class TakeOne>
  Fault take_list(std::size_t which, ondemand::value value, const TakeOne& take_one) {
    ondemand::json_type type{};
    if (const auto error = value.type().get(type)) return fault_of(error);
    if (type != ondemand::json_type::array) {
      if (Fault fault = check_value(value, 1)) return fault;
      return wrong_type(names_[which], type, "a list");
    }
    ondemand::array list;
    if (const auto error = value.get_array().get(list)) return fault_of(error);
    std::size_t place = 0;
    for (auto element : list) {
      ondemand::value inner;
      if (const auto error = element.get(inner)) return fault_of(error);
      if (const auto error = inner.type().get(type)) return fault_of(error);
      if (Fault fault = take_one(place, inner, type)) return fault;
      ++place;
    }
    return std::nullopt;
  }

  std::string element(std::size_t which, std::size_t place) const {
    return fmt::format("{}[{}]", shown(names_[which]), place);
  }

  Fault take_ids(ondemand::value value, Record& out) {
    return take_list(0, value,
                     [&](std::size_t place, ondemand::value id, ondemand::json_type type) -> Fault {
                       if (type != ondemand::json_type::number) {
                         if (Fault fault = check_value(id, 2)) return fault;
                         return wrong_type(element(0, place), type, "a number");
                       }
                       std::uint64_t number = 0;
                       if (id.get_uint64().get(number) == simdjson::SUCCESS && number < vocab_) {
                         out.ids.push_back(static_cast<TokenId>(number));
                         return std::nullopt;
                       }
                       return wrong_id(place, token_of(id));
                     });
  }

  Fault wrong_id(std::size_t place, std::string_view token) const {
    if (!is_number(token)) return fault_of(simdjson::NUMBER_ERROR);
    if (token.find_first_of(".eE") != std::string_view::npos) {
      return JsonlFault{BadRecordReason::kField,
                        fmt::format("field '{}' is {}; expected a whole number", element(0, place),
                                    shown(token))};
    }
    return JsonlFault{BadRecordReason::kTokenId, fmt::format("field '{}': {}", element(0, place),
                                                             outside_vocab(shown(token), vocab_))};
  }

  Fault take_mask(ondemand::value value, Record& out) {
    return take_list(
        1, value, [&](std::size_t place, ondemand::value mark, ondemand::json_type type) -> Fault {
          bool counts = false;
          std::uint64_t number = 0;
          if (type == ondemand::json_type::boolean) {
            if (const auto error = mark.get_bool().get(counts)) return fault_of(error);
            number = counts ? 1 : 0;
          } else if (type != ondemand::json_type::number) {
            if (Fault fault = check_value(mark, 2)) return fault;
            return wrong_type(element(1, place), type, "0 or 1");
          } else if (mark.get_uint64().get(number) != simdjson::SUCCESS || number > 1) {
            if (!is_number(token_of(mark))) return fault_of(simdjson::NUMBER_ERROR);
            return JsonlFault{BadRecordReason::kField,
                              fmt::format("field '{}' is {}; expected 0 or 1", element(1, place),
                                          shown(token_of(mark)))};
          }
          out.loss_mask.push_back(static_cast<std::uint8_t>(number));
          return std::nullopt;
        });
  }

  std::uint32_t vocab_;
  bool holds_ids_ = false;
  std::array<std::string_view, 2> names_;  ///< The second may be empty: then there is one only.
  std::unique_ptr<ondemand::parser> parser_;
};

JsonlParser::JsonlParser(const RecordFields& fields, LossOn loss_on, std::uint32_t vocab)
    : simdjson_(std::make_unique<Simdjson>(fields, loss_on, vocab)) {}

JsonlParser::~JsonlParser() = default;

Result<std::optional<JsonlFault>> JsonlParser::parse(std::string_view padded_line,
                                                     RecordTexts& texts, Record& out) {
  return simdjson_->parse(padded_line, texts, out);
}

Result<std::optional<JsonlFault>> JsonlParser::parse_list(std::string_view padded_text,
                                                          Record& out) {
  return simdjson_->parse_list(padded_text, out);
}

void JsonlParser::shrink() {
  simdjson_->shrink();
}

}  // namespace batchloom::sources
