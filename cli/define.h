// SPDX-License-Identifier: Apache-2.0
// How options fill in the structs of args.h: what several files of definitions share.
#pragma once

#include <string>

#include "cli/args.h"
#include "cli/command_line.h"

namespace batchloom::cli {

/// An option that takes the name of a producer, group or pin: `what`, for messages.
void define_name(Options& options, const std::string& option, const std::string& type,
                 const std::string& what, const std::string& help, std::string& name);

/// --fsync=always|none.
void define_fsync(Options& options, objstore::FsyncPolicy& fsync);

/// "unlimited", which leaves `lead` absent, or a number of steps from 1.
Status parse_lead(const std::string& text, std::optional<std::uint64_t>& lead);

/// URL, --fsync and --json, as all commands on a stream have them.
void define_stream(Options& options, StreamArgs& stream);

// In args_batches.cc.
void define_produce(Options& options, Produce& produce);
void define_consume(Options& options, Consume& consume);
void define_sim_batches(Options& options, SimBatches& batches);

// In args_state.cc.
void define_state_show(Options& options, StateShow& show);
void define_state_diff(Options& options, StateDiff& diff);

// In args_planning.cc.
void define_whatif(Options& options, Whatif& whatif);
void define_plan_explain(Options& options, PlanExplain& explain);
void define_calibrate(Options& options, Calibrate& calibrate);

// In args_pipeline.cc.
void define_run(Options& options, RunPipeline& run);
void define_index(Options& options, IndexSources& index);
void define_explain(Options& options, Explain& explain);
void define_top(Options& options, Top& top);

}  // namespace batchloom::cli
