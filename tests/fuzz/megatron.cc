// SPDX-License-Identifier: Apache-2.0
// libFuzzer's input is tried as an .idx file and as edits to a good one, each with a .bin file of
// the size that it asks for. What a scan of the index says must be what asking for each document
// says, and the documents must lie one behind the other and fill the data.
#include "batchloom/sources/megatron.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "batchloom/sources/megatron_index.h"
#include "tests/fuzz/fuzzing.h"

namespace batchloom::sources {
namespace {

constexpr std::uint64_t kMostDataBytes = 64 << 10;

const Tokenizer& small_vocabulary() {
  static const auto tokenizer =
      make_ids_tokenizer({.vocab = 200, .begin = {1}, .end = {2, 3}}).value();
  return *tokenizer;
}

void check_refused(const Status& status) {
  BL_CHECK(status.is(ErrorKind::kCorruption), status.to_string());
}

/// Nullopt where the index contradicts itself.
std::optional<std::vector<MegatronDocument>> scanned(MegatronIndex& index) {
  std::vector<MegatronDocument> documents;
  std::uint64_t end = 0;
  const Status status = index.scan({}, [&](const MegatronDocument& document) {
    BL_CHECK(document.place.offset_bytes == end, "a gap between documents");
    end += document.place.size_bytes;
    documents.push_back(document);
    return Status::ok();
  });
  if (!status.is_ok()) {
    check_refused(status);
    return std::nullopt;
  }
  BL_CHECK(documents.size() == index.documents() && end == index.data_bytes(), "data left over");
  return documents;
}

void read_all(ShardReader& reader) {
  Record record;
  const std::uint64_t most = std::min<std::uint64_t>(reader.records(), 100);
  for (std::uint64_t i = 0; i < most; ++i) {
    const auto bad = reader.read(i, {}, record);
    if (!bad.is_ok()) {
      check_refused(bad.status());
    } else if (!bad->has_value()) {
      BL_CHECK(record.ids.size() >= 3, "no ids around a record");
      BL_CHECK(std::ranges::all_of(record.ids, [](TokenId id) { return id < 200; }), "a wrong id");
    }
  }
}

void attempt(ByteSpan bytes) {
  const auto file = [&] { return read_bytes("fuzz.idx", Bytes(bytes.begin(), bytes.end())); };
  auto index = MegatronIndex::open(file(), {});
  if (!index.is_ok()) return check_refused(index.status());
  const auto documents = scanned(*index);
  const std::uint64_t most = std::min<std::uint64_t>(index->documents(), 100);
  for (std::uint64_t i = 0; i < most; ++i) {
    const auto document = index->document(i, {});
    if (!documents) continue;
    BL_CHECK(document.is_ok() && document->place == (*documents)[i].place &&
                 document->tokens == (*documents)[i].tokens,
             "asking and scanning differ");
  }
  if (index->data_bytes() > kMostDataBytes) return;
  Bytes data(index->data_bytes());
  for (std::size_t i = 0; i < data.size(); i += 8) data[i] = std::byte(i);
  auto reader = open_megatron({.data = read_bytes("fuzz.bin", std::move(data)), .index = file()},
                              {.max_record_bytes = 1000}, small_vocabulary(), {});
  BL_CHECK(reader.is_ok(), "an index that was good before");
  read_all(**reader);
}

/// Of six sequences of one byte per id, with modes, in five documents.
Bytes good_index() {
  Bytes index = to_bytes(std::string_view("MMIDIDX\0\0\1\0\0\0\0\0\0\0\1", 18));
  const auto add = [&](auto value) {
    index.resize(index.size() + sizeof(value));
    store_le(value, &index[index.size() - sizeof(value)]);
  };
  add(std::uint64_t{6});
  add(std::uint64_t{6});
  for (const std::uint32_t length : {3U, 0U, 2U, 4U, 1U, 5U}) add(length);
  for (const std::uint64_t place : {0U, 3U, 3U, 5U, 9U, 10U}) add(place);
  for (const std::uint64_t bound : {0U, 1U, 4U, 4U, 5U, 6U}) add(bound);
  index.resize(index.size() + 6);
  return index;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Bytes sample = good_index();
  const ByteSpan input = fuzz::input_bytes(data, size);
  attempt(input);
  attempt(fuzz::edited(sample, input));
  return 0;
}

}  // namespace batchloom::sources
