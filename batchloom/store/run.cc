// SPDX-License-Identifier: Apache-2.0
// Decoding trusts nothing, in this order: the frame of the header and its rows; that it is the one
// which its row in the run table means; that columns laid out by their counts end where the run
// ends; padding; then micro-batch by micro-batch each piece's CRC, and its labels.
#include "batchloom/store/run.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "batchloom/base/hash.h"
#include "batchloom/store/damage.h"
#include "batchloom/store/piece_verify.h"
#include "batchloom/store/run_codec.h"

namespace batchloom::store {
namespace {

class RunDecoder {
 public:
  RunDecoder(const ExpectedRun& expected, ByteSpan bytes)
      : expected_(expected),
        bytes_(bytes),
        name_(fmt::format("run of rank {}, step {}", expected.rank.value, expected.position)) {}

  Result<Run> decode() {
    BL_RETURN_IF_ERROR(decode_header());
    BL_RETURN_IF_ERROR(check_identity());
    BL_RETURN_IF_ERROR(lay_out_columns());
    BL_RETURN_IF_ERROR(check_all_padding());
    std::size_t first_piece = 0;
    std::size_t first_member = 0;
    for (std::size_t i = 0; i < header_.micro_batches.size(); ++i) {
      BL_RETURN_IF_ERROR(decode_pieces(i, first_piece));
      fill_ring(i, first_member);
      first_piece += header_.micro_batches[i].pieces;
      first_member += header_.micro_batches[i].members;
    }
    run_.events = std::move(header_.events);
    return std::move(run_);
  }

 private:
  Status decode_header();
  Status check_identity();
  Status lay_out_columns();
  Status check_all_padding() const;
  Status check_padding_after(std::uint64_t end) const;
  Status decode_pieces(std::size_t micro_batch, std::size_t first_piece);
  void fill_ring(std::size_t micro_batch, std::size_t first_member);

  std::span<const RunPieceRow> rows_of(std::size_t micro_batch, std::size_t first_piece) const {
    return std::span(header_.pieces)
        .subspan(first_piece, header_.micro_batches[micro_batch].pieces);
  }
  /// `corruption` at a byte counted from the run's begin.
  Status corrupt(std::uint64_t offset, std::string_view reason) const {
    return corrupt_at(place(), offset, reason);
  }
  ObjectPart place() const {
    return {.key = expected_.key, .name = name_, .begin_bytes = expected_.row.offset_bytes};
  }

  const ExpectedRun& expected_;
  const ByteSpan bytes_;
  const std::string name_;
  std::size_t header_bytes_ = 0;  // Without padding.
  RunHeader header_;
  std::vector<MicroBatchColumns> columns_;
  std::size_t next_tensor_ = 0;
  Run run_;
};

Status RunDecoder::decode_header() {
  if (bytes_.size() < kFrameBytes) return corrupt(bytes_.size(), "truncated: ends in its header");
  const std::uint64_t framed = stated_size(bytes_);
  if (framed > bytes_.size()) {
    return corrupt(
        0, fmt::format("states a header of {} bytes in a run of {}", framed, bytes_.size()));
  }
  header_bytes_ = framed;
  const ByteSpan header = bytes_.first(framed);
  const FrameContext context{.key = expected_.key,
                             .kind = ObjectKind::kRun,
                             .uuid = &expected_.identity.stream,
                             .part = name_,
                             .begin_bytes = expected_.row.offset_bytes};
  BL_ASSIGN_OR_RETURN(header_, decode_run_header(context, header));
  if (stated_crc(header) == expected_.row.header_crc) return Status::ok();
  return corrupt(0, fmt::format("another run: its header has the CRC-32C {:08x}, the run table "
                                "says {:08x}",
                                stated_crc(header), expected_.row.header_crc));
}

Status RunDecoder::check_identity() {
  if (header_.identity != expected_.identity) {
    return corrupt(0, fmt::format("is of {}, expected {}", to_string(header_.identity),
                                  to_string(expected_.identity)));
  }
  if (header_.position != expected_.position || header_.rank != expected_.rank) {
    return corrupt(
        0, fmt::format("is the run of rank {}, step {}", header_.rank.value, header_.position));
  }
  run_.identity = header_.identity;
  run_.position = header_.position;
  run_.rank = header_.rank;
  run_.token_width = header_.token_width;
  run_.samples_digest = header_.samples_digest;
  run_.plan_digest = header_.plan_digest;
  run_.global_valid_labels = header_.global_valid_labels;
  return Status::ok();
}

/// Nothing beyond the header is looked at before it is known to lie inside the run.
Status RunDecoder::lay_out_columns() {
  const std::vector<std::uint64_t> sizes = tensor_sizes(header_.tensors);
  std::uint64_t at = column_aligned(header_bytes_);
  std::size_t first_piece = 0;
  std::size_t first_tensor = 0;
  std::vector<PieceCounts> counts;
  for (std::size_t i = 0; i < header_.micro_batches.size(); ++i) {
    counts.clear();
    std::size_t tensors = 0;
    for (const RunPieceRow& row : rows_of(i, first_piece)) {
      counts.push_back(row.facts.counts(row.tokens()));
      tensors += row.facts.tensors;
    }
    columns_.push_back(
        lay_out(at, header_.token_width, counts, std::span(sizes).subspan(first_tensor, tensors)));
    at = columns_.back().end;
    if (at > bytes_.size()) break;
    first_piece += counts.size();
    first_tensor += tensors;
  }
  if (at == bytes_.size()) return Status::ok();
  const std::uint64_t begin = expected_.row.offset_bytes;
  return corrupt(
      0, fmt::format("its columns end {} byte {}, the run at byte {}",
                     at > bytes_.size() ? "beyond" : "at", begin + at, begin + bytes_.size()));
}

Status RunDecoder::check_all_padding() const {
  BL_RETURN_IF_ERROR(check_padding_after(header_bytes_));
  for (const MicroBatchColumns& columns : columns_) {
    BL_RETURN_IF_ERROR(check_padding_after(columns.tokens.end()));
    BL_RETURN_IF_ERROR(check_padding_after(columns.next_tokens.end()));
    BL_RETURN_IF_ERROR(check_padding_after(columns.labels.end()));
    for (const Slice& tensor : columns.tensors) {
      BL_RETURN_IF_ERROR(check_padding_after(tensor.end()));
    }
  }
  return Status::ok();
}

Status RunDecoder::check_padding_after(std::uint64_t end) const {
  return check_padding(place(), end, bytes_.subspan(end, column_aligned(end) - end));
}

Status RunDecoder::decode_pieces(std::size_t micro_batch, std::size_t first_piece) {
  const RunMicroBatchRow& row = header_.micro_batches[micro_batch];
  RunMicroBatch& decoded = run_.micro_batches.emplace_back();
  decoded.task = row.task;
  decoded.offload = row.offload;
  decoded.pieces.reserve(row.pieces);
  PieceWalk walk(columns_[micro_batch], header_.token_width);
  for (const RunPieceRow& piece : rows_of(micro_batch, first_piece)) {
    const auto tensors = std::span(header_.tensors).subspan(next_tensor_, piece.facts.tensors);
    next_tensor_ += piece.facts.tensors;
    const PieceSlices slices = walk.next(piece.facts.counts(piece.tokens()));
    BL_ASSIGN_OR_RETURN(
        RunPiece verified,
        verify_piece({.place = place(), .row = piece, .tensors = tensors, .slices = slices},
                     [this](const Slice& slice) {
                       return bytes_.subspan(slice.offset_bytes, slice.size_bytes);
                     }));
    decoded.pieces.push_back(std::move(verified));
  }
  return Status::ok();
}

void RunDecoder::fill_ring(std::size_t micro_batch, std::size_t first_member) {
  const auto members =
      std::span(header_.members).subspan(first_member, header_.micro_batches[micro_batch].members);
  run_.micro_batches[micro_batch].ring.assign(members.begin(), members.end());
}

}  // namespace

std::uint64_t samples_digest(std::span<const model::PlanSample> samples) {
  constexpr std::size_t kIdBytes = 20;
  Bytes ids(kIdBytes * samples.size());
  std::byte* out = ids.data();
  for (const model::PlanSample& sample : samples) {
    store_le(sample.id.source.value, out);
    store_le(sample.id.epoch.value, out + 4);
    store_le(sample.id.index.value, out + 8);
    store_le(sample.id.part.value, out + 16);
    out += kIdBytes;
  }
  return xxh3_64(ids);
}

Result<Run> decode_run(const ExpectedRun& expected, std::shared_ptr<const Bytes> bytes,
                       std::size_t begin) {
  const RunRow& row = expected.row;
  const std::size_t there = begin > bytes->size() ? 0 : bytes->size() - begin;
  if (there < row.size_bytes) {
    return corrupt_at(expected.key, row.offset_bytes + there,
                      fmt::format("truncated: the run of rank {}, step {} has {} bytes from "
                                  "byte {}, {} are there",
                                  expected.rank.value, expected.position, row.size_bytes,
                                  row.offset_bytes, there));
  }
  BL_ASSIGN_OR_RETURN(
      Run run, RunDecoder(expected, ByteSpan(*bytes).subspan(begin, row.size_bytes)).decode());
  run.bytes = std::move(bytes);
  return run;
}

}  // namespace batchloom::store
