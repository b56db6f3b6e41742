// SPDX-License-Identifier: Apache-2.0
// libFuzzer's input is tried as a tar with samples of each kind of fields, as it stands and with
// right checksums in its headers. Places ascend within the file, and of a tar that was scanned each
// record is a record or a bad one: what libarchive takes in order it also takes by place.
#include <algorithm>
#include <utility>
#include <vector>

#include "batchloom/sources/tar_reader.h"
#include "batchloom/sources/tar_scan.h"
#include "tests/fuzz/fuzzing.h"

namespace batchloom::sources {
namespace {

constexpr std::uint32_t kVocab = 300;
constexpr std::size_t kBlockBytes = 512;

const Tokenizer& bytes_tokenizer() {
  static const auto tokenizer =
      make_bytes_tokenizer({.vocab = kVocab, .begin = {256}, .end = {257}}).value();
  return *tokenizer;
}

const std::vector<TarSettings>& all_settings() {
  static const ReadLimits limits{.max_record_bytes = 1
                                                     << 20};  // A sparse file may claim to be huge.
  static const std::vector<TarSettings> settings = {
      {.fields = TextField{"txt"}, .loss_on = LossOn::kAll, .limits = limits},
      {.fields = AnswerFields{"q.txt", "json.a"}, .loss_on = LossOn::kAnswer, .limits = limits},
      {.fields = TokenFields{"ids.json", "mask.json"}, .loss_on = LossOn::kMask, .limits = limits},
  };
  return settings;
}

/// With the checksum that each block would have as a header.
Bytes with_checksums(ByteSpan input) {
  Bytes tar(input.begin(), input.end());
  for (std::size_t at = 0; at + kBlockBytes <= tar.size(); at += kBlockBytes) {
    const std::span block = std::span(tar).subspan(at, kBlockBytes);
    if (as_text(block.subspan(257, 5)) != "ustar") continue;
    std::fill_n(block.begin() + 148, 8, std::byte{' '});
    unsigned sum = 0;
    for (const std::byte byte : block) sum += std::to_integer<unsigned>(byte);
    for (std::size_t digit = 0; digit < 6; ++digit, sum /= 8) {
      block[148 + 5 - digit] = static_cast<std::byte>('0' + sum % 8);
    }
    block[154] = std::byte{0};
  }
  return tar;
}

void attempt(const Bytes& tar, const TarSettings& settings) {
  const auto file = read_bytes("fuzz.tar", tar);
  std::uint64_t end = 0;
  const auto offsets = keep_offsets("fuzz.tar", 1 << 20, [&](const PlaceSink& found) {
    return scan_tar(*stream_of(*file), {}, [&](const RecordPlace& place) {
      BL_CHECK(place.offset_bytes >= end && place.size_bytes > 0, "places overlap");
      end = place.offset_bytes + place.size_bytes;
      BL_CHECK(end <= tar.size(), "a place beyond the end");
      return found(place);
    });
  });
  if (!offsets.is_ok()) return BL_CHECK(offsets.is(ErrorKind::kCorruption), "another refusal");
  const auto reader =
      open_tar(read_bytes("fuzz.tar", tar), *offsets, settings, bytes_tokenizer()).value();
  Record record;
  for (std::uint64_t i = 0; i < reader->records(); ++i) {
    const auto bad = reader->read(i, {}, record);
    if (!bad.is_ok()) {
      BL_CHECK(bad.is(ErrorKind::kCorruption), bad.status().to_string());
    } else if (!bad->has_value()) {
      BL_CHECK(record.ids.size() >= 2 && record.ids.front() == 256 && record.ids.back() == 257,
               "no ids around a record");
      BL_CHECK(std::ranges::all_of(record.ids, [](TokenId id) { return id < kVocab; }), "an id");
      BL_CHECK(record.loss_mask.empty() || record.loss_mask.size() == record.ids.size(), "a mask");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteSpan input = fuzz::input_bytes(data, size);
  for (const Bytes& tar : {Bytes(input.begin(), input.end()), with_checksums(input)}) {
    for (const TarSettings& settings : all_settings()) attempt(tar, settings);
  }
  return 0;
}

}  // namespace batchloom::sources
