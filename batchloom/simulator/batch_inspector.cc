// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/batch_inspector.h"

#include <fmt/format.h>

#include <vector>

#include "batchloom/simulator/sample_partition.h"
#include "batchloom/store/keys.h"
#include "batchloom/store/run.h"
#include "batchloom/store/run_table.h"

namespace batchloom::simulator {
namespace {

using model::HdpRank;
using store::Run;

/// Reads one object.
class Inspection {
 public:
  Inspection(const BatchSources& sources, const store::StreamUuid& stream,
             const store::Entry& entry, const SharedBytes& object)
      : sources_(sources),
        entry_(entry),
        object_(object),
        key_(store::data_key(entry.object())),
        context_{.key = key_,
                 .identity = {.stream = stream,
                              .producer = entry.producer,
                              .term = entry.term,
                              .seq = entry.seq},
                 .steps = entry.steps,
                 .ranks = entry.ranks,
                 .size_bytes = object->size()} {}

  Result<BatchBody> run() {
    if (!sources_.has(entry_.producer)) return Status::corruption("its producer has no source");
    if (entry_.ranks == 0 || entry_.ranks > kMostRanks || entry_.steps == 0) {
      return Status::corruption(
          fmt::format("its entry says {} steps of {} ranks", entry_.steps, entry_.ranks));
    }
    for (HdpRank rank; rank.value < entry_.ranks; ++rank) {
      BL_RETURN_IF_ERROR(read_rank(rank));
    }
    BL_ASSIGN_OR_RETURN(const RecordRange records, partition_.records());
    BL_RETURN_IF_ERROR(content_);
    return BatchBody{.producer = entry_.producer, .from = records.from, .to = records.to};
  }

 private:
  Status read_rank(HdpRank rank) {
    BL_ASSIGN_OR_RETURN(const ByteSpan bytes, rows_of(rank));
    BL_ASSIGN_OR_RETURN(const auto rows, store::decode_rank_rows(context_, rank, bytes));
    for (std::uint32_t position = 0; position < entry_.steps; ++position) {
      BL_ASSIGN_OR_RETURN(const Run run, store::decode_run({.key = key_,
                                                            .identity = context_.identity,
                                                            .position = position,
                                                            .rank = rank,
                                                            .row = rows[position]},
                                                           object_, rows[position].offset_bytes));
      if (content_.is_ok()) content_ = check_run(run);
      for (const store::RunMicroBatch& micro_batch : run.micro_batches) {
        for (const store::RunPiece& piece : micro_batch.pieces) partition_.add(piece);
      }
    }
    return Status::ok();
  }

  // The copy in the entry must be the object's own.
  Result<ByteSpan> rows_of(HdpRank rank) const {
    const std::uint64_t at = store::rank_rows_offset(rank, entry_.steps);
    const std::size_t size = store::rank_rows_bytes(entry_.steps);
    if (at + size > object_->size()) return Status::corruption("it is shorter than its run table");
    const ByteSpan rows = ByteSpan(*object_).subspan(at, size);
    const ByteSpan copies = entry_.run_table;
    if (copies.size() != size * entry_.ranks ||
        as_text(copies.subspan(size * rank.value, size)) != as_text(rows)) {
      return Status::corruption(
          fmt::format("the run table in its entry is not the object's at rank {}", rank.value));
    }
    return rows;
  }

  Status check_run(const Run& run) const {
    const ExpectedStep expected =
        sources_.expected(entry_, run.position, {.rank = run.rank, .ranks = entry_.ranks});
    if (content_hash({run.global_valid_labels, run.micro_batches, run.events}) ==
            expected.content_hash &&
        run.samples_digest == expected.samples_digest && run.plan_digest == expected.plan_digest &&
        run.global_valid_labels == expected.global_valid_labels) {
      return Status::ok();
    }
    return Status::corruption(
        fmt::format("the run of rank {} and position {} is not what its producer made",
                    run.rank.value, run.position));
  }

  const BatchSources& sources_;
  const store::Entry& entry_;
  const SharedBytes& object_;
  const std::string key_;
  const store::BatchContext context_;
  SamplePartition partition_;
  Status content_;  // Of the first run that is not what it should be.
};

}  // namespace

Result<BatchBody> RunInspector::inspect(const store::StreamUuid& stream, const store::Entry& entry,
                                        const SharedBytes& object) const {
  return Inspection(sources_, stream, entry, object).run();
}

}  // namespace batchloom::simulator
