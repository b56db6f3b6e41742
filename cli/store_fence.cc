// SPDX-License-Identifier: Apache-2.0
// `batchloom store fence`
#include "batchloom/store/producer_session.h"
#include "cli/commands.h"

namespace batchloom::cli {

Status run(const StoreFence& args, Runtime& runtime) {
  BL_ASSIGN_OR_RETURN(const auto store, OpenStore::open(args.stream.location, runtime));
  const CallOptions call = short_call(runtime);
  BL_ASSIGN_OR_RETURN(const auto stream, store->open_stream(call));
  BL_ASSIGN_OR_RETURN(const auto session,
                      store::ProducerSession::open(*stream, args.producer, call));
  Fields fields;
  fields.add("producer", session->producer())
      .add("term", session->term().value)
      .add("next_seq", session->next_seq().value)
      .add("state_bytes", std::uint64_t{session->state().size()});
  print_result(fields, args.stream.json);
  return Status::ok();
}

}  // namespace batchloom::cli
