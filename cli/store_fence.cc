// SPDX-License-Identifier: Apache-2.0
// `batchloom store fence`
#include <fmt/format.h>

#include <string>
#include <vector>

#include "batchloom/store/producer_session.h"
#include "cli/commands.h"

namespace batchloom::cli {
namespace {

/// A fence adds a row for a producer that has none: for a name that was mistyped, say.
Status check_known_producer(const store::Head& head, const std::string& producer) {
  if (head.find_producer(producer) != nullptr) return Status::ok();
  std::vector<std::string> known;
  for (const store::ProducerRow& row : head.producers) known.push_back(row.producer);
  return Status::not_found(fmt::format(
      "producer {}: slot {} knows no producer of this name; {}", producer, head.slot.value,
      known.empty() ? "it knows none" : fmt::format("it knows {}", fmt::join(known, ", "))));
}

}  // namespace

Status run(const StoreFence& args, Runtime& runtime) {
  BL_ASSIGN_OR_RETURN(const auto store, store::OpenStore::open(args.stream.location, runtime));
  const CallOptions call = short_call(runtime);
  BL_ASSIGN_OR_RETURN(const auto stream, store->open_stream(call));
  store::ManifestReader reader(*stream);
  BL_ASSIGN_OR_RETURN(const store::HeadPtr head, reader.latest(call));
  BL_RETURN_IF_ERROR(check_known_producer(head->head, args.producer));
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
