// SPDX-License-Identifier: Apache-2.0
// `batchloom store verify`
#include "batchloom/store/verify.h"

#include <fmt/format.h>

#include "cli/commands.h"

namespace batchloom::cli {
namespace {

Fields describe(const store::VerifyReport& report) {
  Fields fields;
  fields.add("floor", report.floor.value)
      .add("newest", report.newest.value)
      .add("slots", report.slots)
      .add("leftover_slots", report.leftovers)
      .add("first_step", report.first_step.value)
      .add("next_step", report.next_step.value)
      .add("entries", report.entries)
      .add("steps", report.steps)
      .add("batch_bytes", report.batch_bytes)
      .add("segments_by_level", std::span<const std::uint64_t>(report.segments))
      .add("producers", report.producers)
      .add("memberships", report.memberships)
      .add("pins", report.pins)
      .add("void_pins", report.void_pins)
      .add("live_cursors", report.cursors)
      .add("samples", report.samples)
      .add("tokens", report.tokens)
      .add("complete", report.complete)
      .add("orphan_segments", report.orphans.segments)
      .add("orphan_states", report.orphans.states)
      .add("orphan_batches", report.orphans.batches)
      .add("orphan_memberships", report.orphans.memberships)
      .add("trimmed_segments", report.trimmed.segments)
      .add("trimmed_batches", report.trimmed.batches)
      .add("foreign", std::span<const std::string>(report.foreign))
      .add("problems", std::span<const std::string>(report.problems));
  return fields;
}

}  // namespace

Status run(const StoreVerify& args, Runtime& runtime) {
  BL_ASSIGN_OR_RETURN(const auto store, store::OpenStore::open(args.stream.location, runtime));
  BL_ASSIGN_OR_RETURN(const auto stream, store->open_stream({}, {.even_damaged = true}));
  BL_ASSIGN_OR_RETURN(const store::VerifyReport report,
                      store::verify_stream(*stream, args.depth, {}));
  print_result(describe(report), args.stream.json);
  if (report.is_sound()) return Status::ok();
  return Status::corruption(fmt::format("{}: {} problem{}", args.stream.location.url,
                                        report.problems.size(),
                                        report.problems.size() == 1 ? "" : "s"));
}

}  // namespace batchloom::cli
