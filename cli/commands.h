// SPDX-License-Identifier: Apache-2.0
// What the subcommands do, each in a file of its own name. They write results to stdout and return
// an error for a person: `ok` means exit code 0.
#pragma once

#include <string_view>

#include "batchloom/base/runtime.h"
#include "cli/args.h"
#include "cli/json.h"

namespace batchloom::cli {

Status run(const StoreInit& args, Runtime& runtime);
Status run(const StoreLs& args, Runtime& runtime);
Status run(const StoreShow& args, Runtime& runtime);
/// An error where the stream has problems, too; they are part of the result.
Status run(const StoreVerify& args, Runtime& runtime);
Status run(const StoreFence& args, Runtime& runtime);
/// An error where the object store fails a check, too.
Status run(const StoreProbe& args, Runtime& runtime);
/// An error where an object could not be removed, too.
Status run(const StoreGc& args, Runtime& runtime);
Status run(const StorePin& args, Runtime& runtime);
Status run(const StoreUnpin& args, Runtime& runtime);
Status run(const StorePins& args, Runtime& runtime);
Status run(const StoreSkip& args, Runtime& runtime);
Status run(const StoreEnd& args, Runtime& runtime);
Status run(const StoreReopen& args, Runtime& runtime);
Status run(const StateShow& args, Runtime& runtime);
/// An error where anything lies between the two, too.
Status run(const StateDiff& args, Runtime& runtime);
/// Ends well after SIGINT and SIGTERM, too: at the end of an object.
Status run(const Produce& args, Runtime& runtime);
/// Ends well after SIGINT and SIGTERM, too: after a step.
Status run(const Consume& args, Runtime& runtime);
Status run(const SimBatches& args, Runtime& runtime);
/// An error where a rule was broken, too.
Status run(const SimStore& args, Runtime& runtime);

/// An error where --check finds another order of strategies, too.
Status run(const Whatif& args, Runtime& runtime);
Status run(const PlanExplain& args, Runtime& runtime);
Status run(const Calibrate& args, Runtime& runtime);

Status run(const Explain& args, Runtime& runtime);
/// Ends well after SIGINT and SIGTERM, too: at the end of a step.
Status run(const RunPipeline& args, Runtime& runtime);
Status run(const IndexSources& args, Runtime& runtime);
/// Ends well where the run ends, and after SIGINT, SIGTERM and q.
Status run(const Top& args, Runtime& runtime);

/// Writes to stdout; main() finds out whether that worked.
void print(std::string_view text);
/// A whole result, as text or as one line of JSON.
void print_result(const Fields& fields, bool json);
/// One row of a result with many: a line in either form.
void print_row(const Fields& fields, bool json);

/// The fields that say what an entry is.
Fields describe_entry(const store::Entry& entry);
/// Those of a membership, without its keys.
Fields describe_membership(const store::MembershipRow& row);

/// `store show --step`: the entry of the step, and where each of its pieces comes from.
Status show_step(const StoreShow& args, const store::Stream& stream, const store::Head& head,
                 const CallOptions& call);

/// Long enough for a command that reads and writes a few objects.
CallOptions short_call(Runtime& runtime);

}  // namespace batchloom::cli
