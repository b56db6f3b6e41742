// SPDX-License-Identifier: Apache-2.0
// libFuzzer's input is tried as an index as it stands, and as edits to a good one whose CRCs are
// then made right again: the rules behind them. Whatever is told must keep those rules.
#include <algorithm>

#include "batchloom/base/hash.h"
#include "batchloom/sources/sidecar_format.h"
#include "batchloom/sources/sidecar_view.h"
#include "tests/fuzz/fuzzing.h"

namespace batchloom::sources {
namespace {

constexpr std::uint32_t kRecords = 5;
constexpr std::size_t kPayloadBytes = 16;  // Two loss intervals of 8 bytes, or one and 4 ids.

void check_told(const RecordPayload& payload) {
  const std::uint32_t tokens = payload.record.size.tokens;
  BL_CHECK(payload.record.size.valid_labels <= tokens, "more labels than tokens");
  BL_CHECK(!payload.record.is_bad || tokens == 0, "a bad record with tokens");
  std::uint32_t before = 0;
  for (std::size_t i = 0; i < payload.loss.size(); ++i) {
    const LossInterval interval = payload.loss[i];
    BL_CHECK(interval.begin >= before && interval.begin < interval.end && interval.end <= tokens,
             "a wrong interval");
    before = interval.end;
  }
  std::uint64_t sum = 0;  // Touches every byte.
  for (std::size_t i = 0; i < payload.ids.size(); ++i) sum += payload.ids[i];
  BL_CHECK(sum <= std::uint64_t{UINT32_MAX} * payload.ids.size(), "an id that is too wide");
}

void attempt(ByteSpan bytes) {
  const auto view = SidecarView::open("index", bytes);
  if (!view.is_ok()) {
    BL_CHECK(view.is(ErrorKind::kCorruption) || view.is(ErrorKind::kNotFound),
             view.status().to_string());
    return;
  }
  const std::uint64_t records = view->totals().records;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(records, 100); ++i) {
    for (const std::uint64_t record : {i, records - 1 - i}) {
      const auto payload = view->payload(record);
      if (payload.is_ok()) {
        check_told(*payload);
      } else {
        BL_CHECK(payload.is(ErrorKind::kCorruption), payload.status().to_string());
      }
    }
  }
}

/// One block of records of 4 ids with one loss interval each.
Bytes good_index() {
  const SidecarHeader header{.contents = {.id_width_bytes = 2, .loss_intervals = true},
                             .block_records = 8};
  const HeaderBytes header_bytes = encode(header);
  Bytes bytes(header_bytes.begin(), header_bytes.end());
  for (std::uint32_t i = 0; i < kRecords; ++i) {
    Bytes payload(kPayloadBytes);
    store_le(i % 3, payload.data());
    store_le(4U, &payload[4]);
    bytes.insert(bytes.end(), payload.begin(), payload.end());
  }
  const BlockColumns at =
      columns_of({.records = kRecords, .size_width_bytes = 4, .contents = header.contents});
  Bytes columns(at.end);
  for (std::uint32_t i = 0; i < kRecords; ++i) {
    store_le(std::uint64_t{kSidecarHeaderBytes} + i * kPayloadBytes, &columns[at.payloads + 8 * i]);
    store_le(4U, &columns[at.tokens + 4 * i]);
    store_le(1U, &columns[at.intervals + 4 * i]);
  }
  bytes.insert(bytes.end(), columns.begin(), columns.end());
  bytes.resize(bytes.size() + kDirectoryRowBytes + kSidecarFooterBytes);
  return bytes;
}

/// Puts right CRCs, directory and footer around the payloads and columns of good_index(), however
/// they were edited. What the first columns say of payloads decides which bytes their CRCs cover.
void seal(Bytes& bytes, std::uint32_t size_width_bytes) {
  std::copy_n(good_index().begin(), kSidecarHeaderBytes, bytes.begin());
  const SidecarContents contents{.id_width_bytes = 2, .loss_intervals = true};
  const std::uint64_t columns_at = kSidecarHeaderBytes + kRecords * kPayloadBytes;
  const BlockColumns at =
      columns_of({.records = kRecords, .size_width_bytes = 4, .contents = contents});
  for (std::uint32_t i = 0; i < kRecords; ++i) {
    const auto cell = [&](std::uint64_t column) { return &bytes[columns_at + column + 4 * i]; };
    const auto begin = load_le<std::uint64_t>(&bytes[columns_at + at.payloads + 8 * i]);
    const std::uint64_t size = payload_bytes(contents, load_le<std::uint32_t>(cell(at.intervals)),
                                             load_le<std::uint32_t>(cell(at.tokens)));
    if (begin <= bytes.size() && size <= bytes.size() - begin) {
      store_le(crc32c(ByteSpan(bytes).subspan(begin, size)), cell(at.payload_crcs));
    }
  }
  const std::uint64_t directory_at = bytes.size() - kSidecarFooterBytes - kDirectoryRowBytes;
  const ByteSpan columns = ByteSpan(bytes).subspan(columns_at, directory_at - columns_at);
  const RowBytes row =
      encode(DirectoryRow{.columns_at = columns_at,
                          .columns_bytes = static_cast<std::uint32_t>(columns.size()),
                          .columns_crc = crc32c(columns),
                          .size_width_bytes = size_width_bytes},
             0);
  std::copy(row.begin(), row.end(), bytes.begin() + static_cast<std::ptrdiff_t>(directory_at));
  const SidecarFooter footer{.totals = {.records = kRecords},
                             .directory_at = directory_at,
                             .header_crc = stated_header_crc(bytes)};
  const FooterBytes footer_bytes = encode(footer);
  std::copy(footer_bytes.begin(), footer_bytes.end(), bytes.end() - kSidecarFooterBytes);
}

/// A header and a footer with right CRCs around `bytes` and fields of their own.
void attempt_fields(ByteSpan input) {
  if (input.size() < 16) return;
  SidecarHeader header{.contents = {.id_width_bytes = 4, .loss_intervals = true}};
  header.block_records = 1 + load_le<std::uint16_t>(input.data()) % 64U;
  const HeaderBytes header_bytes = encode(header);
  Bytes bytes(header_bytes.begin(), header_bytes.end());
  bytes.insert(bytes.end(), input.begin() + 8, input.end());
  const std::uint64_t records = load_le<std::uint32_t>(&input[2]) % 1000;
  const std::uint64_t blocks = block_count(records, header.block_records);
  const FooterBytes footer =
      encode(SidecarFooter{.totals = {.records = records},
                           .directory_at = bytes.size() - blocks * kDirectoryRowBytes,
                           .header_crc = stated_header_crc(header_bytes)});
  bytes.insert(bytes.end(), footer.begin(), footer.end());
  attempt(bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteSpan input = fuzz::input_bytes(data, size);
  attempt(input);
  attempt_fields(input);
  static const Bytes sample = good_index();
  Bytes changed = fuzz::edited(sample, input);
  seal(changed, size % 7 == 0 ? 8 : 4);
  attempt(changed);
  return 0;
}

}  // namespace batchloom::sources
