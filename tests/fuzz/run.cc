// SPDX-License-Identifier: Apache-2.0
// What one rank reads: its rows of the run table, and a run. The CRCs of both would stop the
// fuzzer, so that its input is also tried as edits to a good header whose frame is made to fit,
// under a row that means whatever came of it, and as edits to rows that are sealed again.
#include "batchloom/store/run.h"

#include "batchloom/store/run_codec.h"
#include "tests/fuzz/fuzzing.h"

namespace batchloom::store {
namespace {

const BatchIdentity kIdentity{
    .stream = StreamUuid{}, .producer = "p", .term = Term(3), .seq = Seq(7)};

/// Two micro-batches of rank 1: pieces of a ring with labels and tensors, and a filler.
RunHeader sample_header() {
  RunHeader header;
  header.identity = kIdentity;
  header.rank = model::HdpRank(1);
  header.token_width = TokenWidth::k16;
  header.micro_batches = {{.task = 0, .offload = {}, .members = 2, .pieces = 2},
                          {.task = 1, .offload = {}, .members = 1, .pieces = 0}};
  header.members = {model::HdpRank(0), model::HdpRank(1), model::HdpRank(1)};
  header.pieces = {{.sample = {},
                    .sample_tokens = 9,
                    .lo = 0,
                    .hi = 4,
                    .first_position = 0,
                    .facts = {1, 1, false, true, 0}},
                   {.sample = {},
                    .sample_tokens = 9,
                    .lo = 5,
                    .hi = 9,
                    .first_position = 0,
                    .facts = {0, 0, true, false, 0}}};
  header.tensors = {{.token = 2, .info = {"pixels", TensorType::kF16, {2, 3}}}};
  header.events = {{0, model::Phase::kForward},
                   {1, model::Phase::kForward},
                   {1, model::Phase::kBackward},
                   {0, model::Phase::kBackward}};
  return header;
}

/// The framed header and columns behind it, as bytes of a run.
Bytes run_of(ByteSpan framed, ByteSpan columns) {
  Bytes run(framed.begin(), framed.end());
  run.resize(column_aligned(run.size()));
  run.insert(run.end(), columns.begin(), columns.end());
  run.resize(column_aligned(run.size()));
  return run;
}

/// The run under a row that means it.
void attempt(Bytes run) {
  const ExpectedRun expected{.key = "key",
                             .identity = kIdentity,
                             .position = 0,
                             .rank = model::HdpRank(1),
                             .row = {.offset_bytes = 128,
                                     .size_bytes = static_cast<std::uint32_t>(run.size()),
                                     .header_crc = run.size() < kFrameBytes ? 0 : stated_crc(run)}};
  const auto decoded = decode_run(expected, std::make_shared<const Bytes>(std::move(run)), 0);
  if (!decoded.is_ok()) return fuzz::check_refusal(decoded.status());
  std::size_t bytes = 0;
  for (const RunMicroBatch& micro_batch : decoded->micro_batches) {
    for (const RunPiece& piece : micro_batch.pieces) bytes += piece.tokens.size();
  }
  BL_CHECK(bytes <= decoded->bytes->size(), "pieces overlap");
}

/// A good header after edits, with columns of zeros whose CRCs are right wherever they fit.
void attempt_edits(ByteSpan sample, ByteSpan edits) {
  const Bytes payload = fuzz::edited(sample.subspan(kFrameBytes), edits);
  const Bytes framed = encode_frame(ObjectKind::kRun, kIdentity.stream, payload);
  const FrameContext context{.key = "key", .kind = ObjectKind::kRun, .uuid = &kIdentity.stream};
  auto header = decode_run_header(context, framed);
  if (!header.is_ok()) fuzz::check_refusal(header.status());
  attempt(run_of(framed, Bytes(256)));
  attempt(run_of(framed, Bytes(320)));
  if (!header.is_ok()) return;
  BL_CHECK(decode_run_header(context, encode_run_header(*header).bytes).value() == *header,
           "decodes once only");
}

void attempt_rows(ByteSpan edits) {
  const BatchContext object{
      .key = "key", .identity = kIdentity, .steps = 2, .ranks = 2, .size_bytes = 4096};
  const auto decode = [&](ByteSpan bytes) {
    const auto rows = decode_rank_rows(object, model::HdpRank(1), bytes);
    if (!rows.is_ok()) return fuzz::check_refusal(rows.status());
    BL_CHECK(rows->size() == 2 && rows->back().slice().end() <= 4096, "a run beyond the object");
  };
  decode(edits);
  std::vector<RunRow> rows = {{256, 64, 1}, {320, 64, 2}};
  for (; edits.size() >= 6; edits = edits.subspan(6)) {
    RunRow& row = rows[load_le<std::uint8_t>(edits.data()) % 2];
    if (edits[1] < std::byte{128}) row.offset_bytes = load_le<std::uint32_t>(&edits[2]);
    if (edits[1] >= std::byte{64}) row.size_bytes = load_le<std::uint32_t>(&edits[2]);
    if (edits[1] == std::byte{255}) row.offset_bytes = ~row.offset_bytes;
  }
  decode(encode_rank_rows(kIdentity, model::HdpRank(1), rows));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Bytes sample = encode_run_header(sample_header()).bytes;
  const ByteSpan input = fuzz::input_bytes(data, size);
  attempt(Bytes(input.begin(), input.end()));
  attempt(run_of(encode_frame(ObjectKind::kRun, kIdentity.stream, input), {}));
  attempt_edits(sample, input);
  attempt_rows(input);
  return 0;
}

}  // namespace batchloom::store
