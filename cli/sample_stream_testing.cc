// SPDX-License-Identifier: Apache-2.0
// sample_stream FOLDER: makes a stream there with everything that a stream can hold, for
// tests/cli_test.py. Its limits are so small that the two dozen slots have three levels of segments
// and both sorts of state.
//
// Producer "a" commits batches 0 to 8 and is fenced after 5 of them, "b" commits 3 packs of 2 steps
// and finishes: 12 entries, 15 steps. All that is superseded has been reclaimed.
#include <fmt/format.h>

#include <cstdio>
#include <span>

#include "batchloom/base/real_runtime.h"
#include "batchloom/store/producer_session.h"
#include "batchloom/store/reclaimer.h"
#include "cli/open_url.h"

namespace batchloom::cli {
namespace {

constexpr store::Limits kTinyLimits{
    .tail_entries = 2, .inline_state_max_bytes = 20, .arity = 2, .slots_kept = 4};

struct Shape {
  std::uint32_t steps = 1;
  std::uint32_t ranks = 2;
  Bytes run_table = {};
};

Status append(store::ProducerSession& session, std::uint64_t first, std::uint64_t end,
              const Shape& shape) {
  for (std::uint64_t seq = first; seq < end; ++seq) {
    const Bytes body = to_bytes(fmt::format("batch {} of {}", seq, session.producer()));
    const ByteSpan part = body;
    const store::BatchInfo info{.seq = store::Seq(seq),
                                .steps = shape.steps,
                                .ranks = shape.ranks,
                                .run_table = shape.run_table};
    BL_ASSIGN_OR_RETURN(store::PendingBatch batch, session.upload(info, std::span(&part, 1), {}));
    batch.state_after = to_bytes(fmt::format("{} is after batch {}", session.producer(), seq));
    if (session.producer() == "a") batch.state_after.resize(100);
    BL_RETURN_IF_ERROR(session.commit(std::span(&batch, 1), {}).status());
  }
  return Status::ok();
}

Status make_sample(const std::string& folder, Runtime& runtime) {
  const StoreLocation location{
      .url = folder, .folder = folder, .fsync = objstore::FsyncPolicy::kNone};
  BL_ASSIGN_OR_RETURN(const auto store, OpenStore::create(location, runtime));
  BL_RETURN_IF_ERROR(store::init_stream(store->deps(), "sample_stream", {}).status());
  BL_ASSIGN_OR_RETURN(const auto stream,
                      store::Stream::open(store->deps(), {.limits = kTinyLimits}, {}));
  BL_ASSIGN_OR_RETURN(const auto a, store::ProducerSession::open(*stream, "a", {}));
  BL_RETURN_IF_ERROR(append(*a, 0, 5, {}));
  BL_ASSIGN_OR_RETURN(const auto b, store::ProducerSession::open(*stream, "b", {}));
  BL_RETURN_IF_ERROR(append(*b, 0, 3, {.steps = 2, .ranks = 1, .run_table = Bytes(32)}));
  BL_ASSIGN_OR_RETURN(const auto again, store::ProducerSession::open(*stream, "a", {}));
  BL_RETURN_IF_ERROR(append(*again, 5, 9, {}));
  BL_RETURN_IF_ERROR(b->finish({}));
  return store::Reclaimer(*stream).run({}).status();
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
