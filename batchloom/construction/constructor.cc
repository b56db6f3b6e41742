// SPDX-License-Identifier: Apache-2.0
#include "batchloom/construction/constructor.h"

#include <utility>

namespace batchloom::construction {

std::uint64_t ConstructionJob::size_bytes() const {
  std::uint64_t bytes = sizeof(ConstructionJob) + state_after.size();
  for (const StepInput& step : steps) bytes += step.size_bytes();
  return bytes;
}

StreamConstructor::StreamConstructor(std::string name, const store::Stream& stream,
                                     store::Session session,
                                     std::shared_ptr<const ObjectOptions> options)
    : name_(std::move(name)),
      stream_(stream),
      session_(std::move(session)),
      options_(std::move(options)) {}

Result<store::PendingBatch> StreamConstructor::construct(const ConstructionJob& job,
                                                         const CallOptions& call) {
  const store::BatchOptions options{.identity = {.stream = stream_.uuid(),
                                                 .producer = session_.producer,
                                                 .term = session_.term,
                                                 .seq = job.seq},
                                    .token_width = token_width_for(options_->vocab),
                                    .origin = options_->origin};
  BL_ASSIGN_OR_RETURN(const store::BuiltBatch built, build_steps(options, job.steps));
  const store::BatchInfo info{
      .seq = job.seq, .steps = built.steps, .ranks = built.ranks, .run_table = built.run_table};
  BL_ASSIGN_OR_RETURN(store::PendingBatch batch,
                      upload_batch(stream_, session_, info, built.parts, call));
  batch.state_after = job.state_after;
  return batch;
}

}  // namespace batchloom::construction
