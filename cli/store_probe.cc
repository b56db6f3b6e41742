// SPDX-License-Identifier: Apache-2.0
// `batchloom store probe`
#include "batchloom/objstore/probe.h"

#include <fmt/format.h>

#include "batchloom/base/log.h"
#include "cli/commands.h"

namespace batchloom::cli {
namespace {

std::string_view to_text(objstore::ProbeOutcome outcome) {
  switch (outcome) {
    case objstore::ProbeOutcome::kPassed: return "passed";
    case objstore::ProbeOutcome::kFailed: return "failed";
    case objstore::ProbeOutcome::kNotApplicable: return "not_applicable";
  }
  return "";
}

}  // namespace

Status run(const StoreProbe& args, Runtime& runtime) {
  BL_ASSIGN_OR_RETURN(const auto store, store::OpenStore::open(args.stream.location, runtime));
  const objstore::ProbeOptions options{.batch_size_bytes = args.size_bytes};
  BL_ASSIGN_OR_RETURN(const objstore::ProbeReport report,
                      objstore::probe(store->objects(), runtime, options, {}));
  for (const objstore::ProbeFinding& finding : report.findings) {
    Fields fields;
    fields.add("check", finding.check)
        .add("outcome", to_text(finding.outcome))
        .add("reason", finding.reason);
    print_row(fields, args.stream.json);
  }
  for (const std::string& key : report.left_behind) {
    log_warning(fmt::format("{}: the probe could not remove it again", key));
  }
  return report.verdict();
}

}  // namespace batchloom::cli
