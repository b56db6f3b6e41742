// SPDX-License-Identifier: Apache-2.0
// `batchloom store skip`, `end` and `reopen`
#include "batchloom/store/stream_events.h"

#include "cli/commands.h"

namespace batchloom::cli {
namespace {

/// Commits an event and prints where it stands.
template <class Commit>
Status commit_event(const StreamArgs& args, Runtime& runtime, Commit commit) {
  BL_ASSIGN_OR_RETURN(const auto store, store::OpenStore::open(args.location, runtime));
  const CallOptions call = short_call(runtime);
  BL_ASSIGN_OR_RETURN(const auto stream, store->open_stream(call));
  BL_ASSIGN_OR_RETURN(const store::EditReceipt receipt, commit(*stream, call));
  const store::Head& head = receipt.head->head;
  Fields fields;
  fields.add("slot", head.slot.value)
      .add("committed", receipt.committed)
      .add("first_step", head.first_step.value)
      .add("next_step", head.next_step.value)
      .add("ended", head.ended);
  print_result(fields, args.json);
  return Status::ok();
}

}  // namespace

Status run(const StoreSkip& args, Runtime& runtime) {
  return commit_event(args.stream, runtime,
                      [&](const store::Stream& stream, const CallOptions& call) {
                        return store::skip_step(stream, args.step, call);
                      });
}

Status run(const StoreEnd& args, Runtime& runtime) {
  return commit_event(args.stream, runtime,
                      [](const store::Stream& stream, const CallOptions& call) {
                        return store::end_stream(stream, call);
                      });
}

Status run(const StoreReopen& args, Runtime& runtime) {
  return commit_event(args.stream, runtime,
                      [](const store::Stream& stream, const CallOptions& call) {
                        return store::reopen_stream(stream, call);
                      });
}

}  // namespace batchloom::cli
