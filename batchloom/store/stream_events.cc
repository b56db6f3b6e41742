// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/stream_events.h"

#include "batchloom/store/event_proposal.h"

namespace batchloom::store {
namespace {

Result<EditReceipt> commit_event(const Stream& stream, const HeadEdit& event,
                                 const CallOptions& call) {
  ManifestReader reader(stream);
  return commit_edit(stream, reader, event, call);
}

}  // namespace

Result<EditReceipt> skip_step(const Stream& stream, Step step, const CallOptions& call) {
  return commit_event(
      stream, [&](const Head& head) { return propose_skip(head, step, stream.limits()); }, call);
}

Result<EditReceipt> set_topology(const Stream& stream, const model::Topology& topology,
                                 const CallOptions& call) {
  return commit_event(
      stream, [&](const Head& head) { return propose_topology(head, topology, stream.limits()); },
      call);
}

Result<EditReceipt> end_stream(const Stream& stream, const CallOptions& call) {
  return commit_event(stream, propose_end, call);
}

Result<EditReceipt> reopen_stream(const Stream& stream, const CallOptions& call) {
  return commit_event(stream, propose_reopen, call);
}

}  // namespace batchloom::store
