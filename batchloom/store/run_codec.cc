// SPDX-License-Identifier: Apache-2.0
// Run headers. What a decoded header promises, beyond the rows' own rules (piece_rows.cc):
//
//   1. Producer, term and width are possible ones; the codec is one that this build reads.
//   2. The rows of micro-batches and pieces own all members, pieces and tensors: none is left over.
//   3. A piece is not empty and lies inside its sample; its tensors belong to tokens of it, in
//      order.
//   4. A ring is not empty, and the run's rank is in it; an offload ratio is at most 1.
//   5. Each micro-batch goes forward once, and later backward once; there are no other events.
#include "batchloom/store/run_codec.h"

#include <fmt/format.h>

#include <algorithm>

#include "batchloom/store/batch_object_generated.h"
#include "batchloom/store/keys.h"

namespace batchloom::store {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

fb::RunPiece to_fb(const RunPieceRow& row) {
  return {row.sample.index.value,
          row.first_position,
          row.sample.source.value,
          row.sample.epoch.value,
          row.sample.part.value,
          row.sample_tokens,
          row.lo,
          row.hi,
          row.facts.label_intervals,
          row.facts.tensors,
          encode_flags(row.facts),
          row.facts.crc};
}

fb::RunMicroBatch to_fb(const RunMicroBatchRow& row) {
  return {row.task, row.offload.value, row.members, row.pieces};
}

fb::RunEvent to_fb(const RunEvent& event) {
  return {event.micro_batch, static_cast<std::uint32_t>(event.phase)};
}

template <class Row>
auto encode_rows(FlatBufferBuilder& builder, const std::vector<Row>& rows) {
  std::vector<decltype(to_fb(rows.front()))> stored;
  stored.reserve(rows.size());
  for (const Row& row : rows) stored.push_back(to_fb(row));
  return builder.CreateVectorOfStructs(stored);
}

Offset<flatbuffers::Vector<std::uint32_t>> encode_members(
    FlatBufferBuilder& builder, const std::vector<model::HdpRank>& members) {
  std::vector<std::uint32_t> ranks;
  ranks.reserve(members.size());
  for (const model::HdpRank rank : members) ranks.push_back(rank.value);
  return builder.CreateVector(ranks);
}

/// Turns the verified table into a RunHeader, part by part; stops at the first broken rule.
class RunHeaderDecoder {
 public:
  RunHeaderDecoder(const FrameContext& context, const Origin& origin, const fb::Run& table)
      : context_(context), origin_(origin), table_(table) {}

  Result<RunHeader> decode() {
    BL_RETURN_IF_ERROR(decode_scalars());
    for (const std::uint32_t rank : *table_.members()) header_.members.emplace_back(rank);
    BL_ASSIGN_OR_RETURN(header_.tensors, decode_tensors(origin_, *table_.tensors()));
    BL_RETURN_IF_ERROR(decode_pieces());
    BL_RETURN_IF_ERROR(decode_micro_batches());
    BL_RETURN_IF_ERROR(decode_events());
    return std::move(header_);
  }

 private:
  Status decode_scalars();
  Status decode_pieces();
  Status decode_micro_batches();
  Status check_ring(const fb::RunMicroBatch& row, std::size_t first) const;
  Status decode_events();

  const FrameContext& context_;
  const Origin& origin_;
  const fb::Run& table_;
  RunHeader header_;
};

Status RunHeaderDecoder::decode_scalars() {
  const std::string_view producer(table_.producer()->c_str(), table_.producer()->size());
  if (!is_name(producer) || table_.term() == 0) {
    return origin_.corrupt(
        table_.producer(),
        fmt::format("a producer's name of {} bytes with term {}", producer.size(), table_.term()));
  }
  BL_RETURN_IF_ERROR(
      check_encoding(context_.place(), kFrameBytes, table_.token_bytes(), table_.codec()));
  header_.identity = {.stream = *context_.uuid,
                      .producer = std::string(producer),
                      .term = Term(table_.term()),
                      .seq = Seq(table_.seq())};
  header_.position = table_.position();
  header_.rank = model::HdpRank(table_.rank());
  header_.token_width = static_cast<TokenWidth>(table_.token_bytes());
  header_.samples_digest = table_.samples_digest();
  header_.plan_digest = table_.plan_digest();
  header_.global_valid_labels = table_.global_valid_labels();
  return Status::ok();
}

Status RunHeaderDecoder::decode_pieces() {
  BL_RETURN_IF_ERROR(check_alignment(origin_, *table_.pieces()));
  header_.pieces.reserve(table_.pieces()->size());
  RowCounter tensors(header_.tensors.size());
  for (const fb::RunPiece* row : *table_.pieces()) {
    if (row->lo() >= row->hi() || row->hi() > row->sample_tokens()) {
      return origin_.corrupt(row, fmt::format("a piece of tokens [{}, {}) of {}", row->lo(),
                                              row->hi(), row->sample_tokens()));
    }
    RunPieceRow& piece = header_.pieces.emplace_back();
    piece.sample = {.source = model::SourceId(row->source()),
                    .epoch = model::Epoch(row->epoch()),
                    .index = model::RecordIndex(row->index()),
                    .part = model::PartIndex(row->part())};
    piece.sample_tokens = row->sample_tokens();
    piece.lo = row->lo();
    piece.hi = row->hi();
    piece.first_position = row->first_position();
    BL_ASSIGN_OR_RETURN(piece.facts, decode_facts(origin_, row, piece.tokens(), row->flags(),
                                                  {.label_intervals = row->label_intervals(),
                                                   .tensors = row->tensors(),
                                                   .crc = row->crc()}));
    const std::uint64_t first = tensors.taken();
    if (!tensors.take(row->tensors())) {
      return origin_.corrupt(row, fmt::format("a piece with {} tensors; {} are left",
                                              row->tensors(), header_.tensors.size() - first));
    }
    BL_RETURN_IF_ERROR(check_tensor_tokens(
        origin_, row, piece.tokens(), std::span(header_.tensors).subspan(first, row->tensors())));
  }
  if (tensors.all_taken()) return Status::ok();
  return origin_.corrupt(table_.tensors(), "tensors that belong to no piece");
}

Status RunHeaderDecoder::decode_micro_batches() {
  BL_RETURN_IF_ERROR(check_alignment(origin_, *table_.micro_batches()));
  RowCounter members(header_.members.size());
  RowCounter pieces(header_.pieces.size());
  for (const fb::RunMicroBatch* row : *table_.micro_batches()) {
    const std::uint64_t first = members.taken();
    if (!members.take(row->members()) || !pieces.take(row->pieces())) {
      return origin_.corrupt(row, fmt::format("a micro-batch of {} members and {} pieces: more "
                                              "than there are",
                                              row->members(), row->pieces()));
    }
    BL_RETURN_IF_ERROR(check_ring(*row, first));
    header_.micro_batches.push_back({.task = row->task(),
                                     .offload = model::OffloadRatio(row->offload()),
                                     .members = row->members(),
                                     .pieces = row->pieces()});
  }
  if (members.all_taken() && pieces.all_taken()) return Status::ok();
  return origin_.corrupt(table_.micro_batches(), "members or pieces that belong to no micro-batch");
}

Status RunHeaderDecoder::check_ring(const fb::RunMicroBatch& row, std::size_t first) const {
  const auto ring = std::span(header_.members).subspan(first, row.members());
  if (std::ranges::find(ring, header_.rank) == ring.end()) {
    return origin_.corrupt(&row, fmt::format("rank {} is not in the ring of its task {}",
                                             header_.rank.value, row.task()));
  }
  if (row.offload() > model::kOffloadAll.value) {
    return origin_.corrupt(
        &row, fmt::format("the offload ratio {}/{}", row.offload(), model::kOffloadAll.value));
  }
  return Status::ok();
}

Status RunHeaderDecoder::decode_events() {
  BL_RETURN_IF_ERROR(check_alignment(origin_, *table_.events()));
  constexpr std::uint8_t kPhases = 2;
  std::vector<std::uint8_t> next_phase(header_.micro_batches.size());
  for (const fb::RunEvent* row : *table_.events()) {
    const std::uint32_t micro_batch = row->micro_batch();
    if (micro_batch >= next_phase.size() || row->phase() >= kPhases ||
        row->phase() != next_phase[micro_batch]) {
      return origin_.corrupt(row, fmt::format("micro-batch {} of {} goes through phase {} out of "
                                              "turn",
                                              micro_batch, next_phase.size(), row->phase()));
    }
    ++next_phase[micro_batch];
    header_.events.push_back(
        {.micro_batch = micro_batch, .phase = static_cast<model::Phase>(row->phase())});
  }
  if (header_.events.size() == kPhases * next_phase.size()) return Status::ok();
  return origin_.corrupt(table_.events(),
                         fmt::format("{} events; {} micro-batches go forward and backward",
                                     header_.events.size(), next_phase.size()));
}

}  // namespace

std::uint64_t encoded_bound(const RunHeader& header) {
  constexpr std::uint64_t kFixedBytes = 512;  // Frame, table, name, lengths and padding.
  return kFixedBytes + sizeof(fb::RunMicroBatch) * header.micro_batches.size() +
         sizeof(std::uint32_t) * header.members.size() +
         sizeof(fb::RunPiece) * header.pieces.size() + encoded_bound(header.tensors) +
         sizeof(fb::RunEvent) * header.events.size();
}

Encoded encode_run_header(const RunHeader& header) {
  FlatBufferBuilder builder(encoded_bound(header));
  const auto producer = builder.CreateString(header.identity.producer);
  const auto micro_batches = encode_rows(builder, header.micro_batches);
  const auto members = encode_members(builder, header.members);
  const auto pieces = encode_rows(builder, header.pieces);
  const auto tensors = encode_tensors(builder, header.tensors);
  const auto events = encode_rows(builder, header.events);
  return finish_frame(ObjectKind::kRun, header.identity.stream, builder,
                      fb::CreateRun(builder, producer, header.identity.term.value,
                                    header.identity.seq.value, header.position, header.rank.value,
                                    static_cast<std::uint8_t>(header.token_width),
                                    static_cast<std::uint8_t>(Codec::kRaw), header.samples_digest,
                                    header.plan_digest, header.global_valid_labels, micro_batches,
                                    members, pieces, tensors, events));
}

Result<RunHeader> decode_run_header(const FrameContext& context, ByteSpan framed) {
  BL_ASSIGN_OR_RETURN(const AlignedFrame frame, AlignedFrame::open(context, framed));
  BL_ASSIGN_OR_RETURN(const auto* table, verified_root<fb::Run>(context, frame.payload()));
  const Origin origin(context, frame.payload().data());
  return RunHeaderDecoder(context, origin, *table).decode();
}

}  // namespace batchloom::store
