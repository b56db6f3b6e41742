// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/pipeline_run_testing.h"

#include <fmt/format.h>

#include "batchloom/base/check.h"
#include "batchloom/base/hash.h"
#include "batchloom/store/batch_reader.h"
#include "batchloom/store/entry_walk.h"
#include "batchloom/store/store_fixture_testing.h"

namespace batchloom::control {
namespace {

void add_piece(Digest& digest, const store::RunPiece& piece) {
  digest.add_text(to_string(piece.sample));
  digest.add_int(piece.lo);
  digest.add_int(piece.hi);
  digest.add_int(piece.first_position);
  digest.add(piece.tokens);
}

}  // namespace

Result<Fetched> CorpusFetcher::fetch(const FetchOrder& order, FetchPlace& place,
                                     const CallOptions& call) {
  place.move_to(
      {.sample = static_cast<std::uint32_t>(order.samples.size() - 1), .stage = FetchStage::kRead});
  if (before) BL_RETURN_IF_ERROR(before(order, call));
  Fetched fetched;
  for (const model::SampleMeta& sample : order.samples) {
    if (!bad.contains({sample.id.source, sample.id.index})) continue;
    fetched.bad.push_back({sample.id, "record " + to_string(sample.id) + " is bad"});
  }
  if (!fetched.bad.empty()) return fetched;
  fetched.block = corpus_.load(order.step, order.samples).front();
  return fetched;
}

std::vector<store::Entry> entries_of(const store::Stream& stream) {
  std::vector<store::Entry> entries;
  store::SegmentReader segments(stream);
  const store::HeadPtr head = store::newest(stream);
  const auto add = [&](const store::Entry& entry) {
    entries.push_back(entry);
    return Status::ok();
  };
  const Status walked = store::for_each_entry(segments, head->head, {}, {}, add);
  BL_CHECK(walked.is_ok(), walked.to_string());
  return entries;
}

std::vector<std::string> content_of(const store::Stream& stream) {
  std::vector<std::string> lines;
  store::BatchReader reader(stream);
  for (const store::Entry& entry : entries_of(stream)) {
    for (std::uint32_t position = 0; position < entry.steps; ++position) {
      Digest digest;
      for (std::uint32_t rank = 0; rank < entry.ranks; ++rank) {
        const store::Run run = reader.read_run(entry, position, model::HdpRank(rank), {}).value();
        digest.add_int(run.plan_digest);
        digest.add_int(run.samples_digest);
        digest.add_int(std::uint64_t{run.micro_batches.size()});
        for (const store::RunMicroBatch& micro_batch : run.micro_batches) {
          for (const store::RunPiece& piece : micro_batch.pieces) add_piece(digest, piece);
        }
      }
      lines.push_back(
          fmt::format("{}: {:016x}", (entry.first_step + position).value, digest.value()));
    }
  }
  return lines;
}

}  // namespace batchloom::control
