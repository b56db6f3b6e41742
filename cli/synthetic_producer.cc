// SPDX-License-Identifier: Apache-2.0
#include "cli/synthetic_producer.h"

#include <fmt/format.h>

#include "batchloom/base/hash.h"

namespace batchloom::cli {
namespace {

// A mark, the next batch, and the digest of the configuration.
constexpr std::string_view kMark = "synth-1\n";
constexpr std::size_t kStateBytes = 24;

std::uint64_t digest_of(const simulator::SyntheticConfig& config) {
  Digest digest;
  digest.add_int(config.seed);
  digest.add_int(config.ranks);
  digest.add_int(config.steps_per_object);
  digest.add_int(config.records_per_run);
  digest.add_int(config.record_tokens);
  digest.add_int(static_cast<std::uint8_t>(config.ring));
  digest.add_int(static_cast<std::uint8_t>(config.token_width));
  digest.add_int(config.source.value);
  return digest.value();
}

}  // namespace

Bytes synthetic_state(const simulator::SyntheticConfig& config, store::Seq next) {
  Bytes state = to_bytes(kMark);
  state.resize(kStateBytes);
  store_le(next.value, state.data() + 8);
  store_le(digest_of(config), state.data() + 16);
  return state;
}

Status check_synthetic_state(ByteSpan state, const simulator::SyntheticConfig& config,
                             store::Seq next) {
  if (state.empty() && next == store::Seq(0)) return Status::ok();
  const bool is_ours = state.size() == kStateBytes && as_text(state).starts_with(kMark) &&
                       load_le<std::uint64_t>(state.data() + 8) == next.value;
  if (!is_ours) {
    return Status::invalid(fmt::format(
        "its state before batch {} was not written by `produce --synthetic`; use another name",
        next.value));
  }
  if (load_le<std::uint64_t>(state.data() + 16) == digest_of(config)) return Status::ok();
  return Status::invalid(fmt::format(
      "its batches before {} were made with other options (--seed, --ranks, --steps-per-object, "
      "--records-per-run, --record-tokens, --ring, --token-bits, --source); give the same ones, or "
      "use another name",
      next.value));
}

Result<store::PendingBatch> upload_synthetic(const store::Stream& stream,
                                             store::ProducerSession& session,
                                             const simulator::SyntheticBatches& batches,
                                             store::Seq seq, const CallOptions& call) {
  const simulator::SyntheticBatches::Object object = batches.object(seq);
  const store::BatchOptions options{
      .identity = {stream.uuid(), session.producer(), session.term(), seq},
      .token_width = batches.config().token_width,
      .origin = batches.origin()};
  BL_ASSIGN_OR_RETURN(const store::BuiltBatch built, store::build_batch(options, object.steps()));
  const store::BatchInfo info{
      .seq = seq, .steps = built.steps, .ranks = built.ranks, .run_table = built.run_table};
  BL_ASSIGN_OR_RETURN(store::PendingBatch batch, session.upload(info, built.parts, call));
  batch.state_after = synthetic_state(batches.config(), seq + 1);
  return batch;
}

}  // namespace batchloom::cli
