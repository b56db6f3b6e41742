// SPDX-License-Identifier: Apache-2.0
// sample_stream FOLDER: makes a stream there with everything that a stream can hold, for
// tests/cli_test.py and tests/damage_test.py. Its limits are so small that the two dozen slots have
// three levels of segments and both sorts of state and of membership.
//
// Producer "a" commits batches 0 to 8 for 2 ranks and is fenced after 5 of them, "b" commits 3
// packs of 2 steps for 1 rank and finishes: 12 entries, 15 steps. "a" has set the membership from
// step 0 on, by few keys, and from step 13 on, by more. All that is superseded has been reclaimed.
// Group "job" has a pin and a live cursor.
#include <fmt/format.h>

#include <cstdio>
#include <span>

#include "batchloom/base/real_runtime.h"
#include "batchloom/store/live_cursor.h"
#include "batchloom/store/open_url.h"
#include "batchloom/store/pins.h"
#include "batchloom/store/producer_session.h"
#include "batchloom/store/reclaimer.h"
#include "cli/synthetic_producer.h"

namespace batchloom::cli {
namespace {

using simulator::SyntheticBatches;

constexpr store::Limits kTinyLimits{.tail_entries = 2,
                                    .inline_state_max_bytes = 20,
                                    .inline_membership_max_bytes = 20,
                                    .arity = 2,
                                    .slots_kept = 4};

/// Batches of a few small samples.
Result<std::unique_ptr<SyntheticBatches>> small_batches(std::uint32_t steps, std::uint32_t ranks,
                                                        model::SourceId source) {
  simulator::SyntheticConfig config;
  config.steps_per_object = steps;
  config.ranks = ranks;
  config.records_per_run = 1;
  config.record_tokens = 6;
  config.ring = true;
  config.source = source;
  return SyntheticBatches::create(config);
}

Status append_one(const store::Stream& stream, store::ProducerSession& session, store::Seq seq,
                  const SyntheticBatches& batches) {
  BL_ASSIGN_OR_RETURN(store::PendingBatch batch,
                      upload_synthetic(stream, session, batches, seq, {}));
  batch.state_after = to_bytes(fmt::format("{} is after batch {}", session.producer(), seq.value));
  if (session.producer() == "a") batch.state_after.resize(100);
  return session.commit(std::span(&batch, 1), {}).status();
}

Status append(const store::Stream& stream, store::ProducerSession& session, std::uint64_t first,
              std::uint64_t end, const SyntheticBatches& batches) {
  for (std::uint64_t seq = first; seq < end; ++seq) {
    BL_RETURN_IF_ERROR(append_one(stream, session, store::Seq(seq), batches));
  }
  return Status::ok();
}

Status set_membership(store::ProducerSession& session, std::uint64_t from_step,
                      std::size_t keys_bytes) {
  return session
      .set_membership({.from_step = store::Step(from_step),
                       .digest = {.high = 0, .low = keys_bytes},
                       .keys = Bytes(keys_bytes, std::byte{'k'})},
                      {})
      .status();
}

Status make_sample(const std::string& folder, Runtime& runtime) {
  const store::StoreLocation location{
      .url = folder, .folder = folder, .fsync = objstore::FsyncPolicy::kNone};
  BL_ASSIGN_OR_RETURN(const auto store, store::OpenStore::create(location, runtime));
  BL_RETURN_IF_ERROR(store::init_stream(store->deps(), "sample_stream", {}).status());
  BL_ASSIGN_OR_RETURN(const auto stream,
                      store::Stream::open(store->deps(), {.limits = kTinyLimits}, {}));
  BL_ASSIGN_OR_RETURN(const auto plain, small_batches(1, 2, model::SourceId(0)));
  BL_ASSIGN_OR_RETURN(const auto packs, small_batches(2, 1, model::SourceId(1)));
  BL_ASSIGN_OR_RETURN(const auto a, store::ProducerSession::open(*stream, "a", {}));
  BL_RETURN_IF_ERROR(set_membership(*a, 0, 12));
  BL_RETURN_IF_ERROR(append(*stream, *a, 0, 5, *plain));
  BL_ASSIGN_OR_RETURN(const auto b, store::ProducerSession::open(*stream, "b", {}));
  BL_RETURN_IF_ERROR(append(*stream, *b, 0, 3, *packs));
  BL_ASSIGN_OR_RETURN(const auto again, store::ProducerSession::open(*stream, "a", {}));
  BL_RETURN_IF_ERROR(set_membership(*again, 13, 3000));
  BL_RETURN_IF_ERROR(append(*stream, *again, 5, 9, *plain));
  BL_RETURN_IF_ERROR(b->finish({}));
  BL_RETURN_IF_ERROR(store::Reclaimer(*stream).run({}).status());
  BL_RETURN_IF_ERROR(store::open_live_cursor(*stream, "job", store::Step(2), {}).status());
  return store::pin_step(*stream, {.group = "job", .id = "saved", .step = store::Step(3)}, {})
      .status();
}

}  // namespace
}  // namespace batchloom::cli

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: sample_stream FOLDER\n");
    return 2;
  }
  const auto runtime = batchloom::make_real_runtime();
  const batchloom::Status made = batchloom::cli::make_sample(argv[1], *runtime);
  if (!made.is_ok()) fmt::print(stderr, "sample_stream: {}\n", made.to_string());
  return made.is_ok() ? 0 : 1;
}
