// SPDX-License-Identifier: Apache-2.0
// libFuzzer's input is tried as a JSON Lines file with records of each kind of fields. A line that
// can be used, and none that is bad for its syntax, must be JSON for simdjson's other parser, which
// looks at every byte of it.
#include <simdjson.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "batchloom/sources/jsonl_reader.h"
#include "batchloom/sources/jsonl_scan.h"
#include "tests/fuzz/fuzzing.h"

namespace batchloom::sources {
namespace {

constexpr std::uint32_t kVocab = 300;

const Tokenizer& bytes_tokenizer() {
  static const auto tokenizer =
      make_bytes_tokenizer({.vocab = kVocab, .begin = {256}, .end = {257}}).value();
  return *tokenizer;
}

const std::vector<JsonlSettings>& all_settings() {
  static const std::vector<JsonlSettings> settings = {
      {.fields = TextField{"t"}, .loss_on = LossOn::kAll, .limits = {}},
      {.fields = AnswerFields{"p", "t"}, .loss_on = LossOn::kAnswer, .limits = {}},
      {.fields = TokenFields{"i", "m"}, .loss_on = LossOn::kMask, .limits = {}},
  };
  return settings;
}

/// What the other parser says of a line; numbers that JSON allows and it does not hold count as
/// right, and so does what is nested too deep for it.
bool is_json(std::string_view line, bool if_unsure) {
  if (line.starts_with(kUtf8Mark)) line.remove_prefix(kUtf8Mark.size());
  simdjson::dom::parser parser;
  simdjson::dom::element element;
  const auto error = parser.parse(line.data(), line.size()).get(element);
  const bool unsure = error == simdjson::NUMBER_ERROR || error == simdjson::DEPTH_ERROR;
  return unsure ? if_unsure : error == simdjson::SUCCESS && element.is_object();
}

void check_good(const Record& record, std::string_view line) {
  BL_CHECK(record.ids.size() >= 2 && record.ids.front() == 256 && record.ids.back() == 257,
           "no ids around a record");
  BL_CHECK(std::ranges::all_of(record.ids, [](TokenId id) { return id < kVocab; }), "a wrong id");
  BL_CHECK(record.loss_mask.empty() || record.loss_mask.size() == record.ids.size(), "a mask");
  BL_CHECK(size_of(record).valid_labels < record.ids.size(), "a label before the first id");
  BL_CHECK(is_json(line, true), "a line that is no JSON was taken");
}

void attempt(ByteSpan bytes, const JsonlSettings& settings) {
  auto file = read_bytes("fuzz.jsonl", Bytes(bytes.begin(), bytes.end()));
  const auto offsets = scan_jsonl_offsets(*stream_of(*file), 1 << 20, {});
  if (!offsets.is_ok()) return BL_CHECK(offsets.is(ErrorKind::kCorruption), "another refusal");
  const auto reader = open_jsonl(std::move(file), *offsets, settings, bytes_tokenizer()).value();
  std::uint64_t end = 0;
  Record record;
  for (std::uint64_t i = 0; i < reader->records(); ++i) {
    const RecordPlace place = (*offsets)->place(i);
    BL_CHECK(place.offset_bytes >= end && place.size_bytes > 0, "places overlap");
    end = place.offset_bytes + place.size_bytes;
    BL_CHECK(end <= bytes.size(), "a place beyond the end");
    const std::string_view line = as_text(bytes.subspan(place.offset_bytes, place.size_bytes));
    const auto bad = reader->read(i, {}, record);
    BL_CHECK(bad.is_ok(), bad.status().to_string());
    if (!bad->has_value()) {
      check_good(record, line);
    } else if ((*bad)->reason == BadRecordReason::kSyntax ||
               (*bad)->reason == BadRecordReason::kEncoding) {
      BL_CHECK(!is_json(line, false), (*bad)->message);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteSpan input = fuzz::input_bytes(data, size);
  for (const JsonlSettings& settings : all_settings()) attempt(input, settings);
  return 0;
}

}  // namespace batchloom::sources
