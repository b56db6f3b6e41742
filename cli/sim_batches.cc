// SPDX-License-Identifier: Apache-2.0
// `batchloom sim batches`: no store is asked.
#include <fmt/format.h>

#include "cli/commands.h"

namespace batchloom::cli {

Status run(const SimBatches& args, Runtime&) {
  BL_ASSIGN_OR_RETURN(const auto batches, simulator::SyntheticBatches::create(args.config));
  const std::uint64_t per_object = args.config.steps_per_object;
  for (std::uint64_t i = 0; i < args.steps; ++i) {
    const std::uint64_t step = args.first_step + i;
    for (std::uint32_t rank = 0; rank < args.config.ranks; ++rank) {
      if (args.rank && args.rank->value != rank) continue;
      const std::uint64_t hash = batches->expected_hash(
          store::Seq(step / per_object), static_cast<std::uint32_t>(step % per_object),
          model::HdpRank(rank));
      Fields fields;
      fields.add("step", step)
          .add("rank", std::uint64_t{rank})
          .add("hash", fmt::format("{:016x}", hash));
      print_row(fields, args.json);
    }
  }
  return Status::ok();
}

}  // namespace batchloom::cli
