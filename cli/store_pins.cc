// SPDX-License-Identifier: Apache-2.0
// `batchloom store pin`, `unpin` and `pins`
#include "batchloom/store/pins.h"

#include <fmt/format.h>

#include "batchloom/store/live_cursor.h"
#include "cli/commands.h"

namespace batchloom::cli {
namespace {

Fields describe(const store::Pin& pin, store::Step first_step) {
  Fields fields;
  fields.add("kind", "pin")
      .add("group", pin.name.group)
      .add("id", pin.name.id)
      .add("step", pin.step.value)
      .add("below_first_step", pin.step < first_step);
  return fields;
}

Fields describe(const store::LiveCursor& cursor, store::Step first_step) {
  Fields fields;
  fields.add("kind", "live")
      .add("group", cursor.group)
      .add("keep_from", cursor.keep_from.value)
      .add("cursor", cursor.cursor.value)
      .add("counter", cursor.counter)
      .add("closed", cursor.closed)
      .add("below_first_step", cursor.keep_from < first_step);
  return fields;
}

Result<std::size_t> remove_pins(const StoreUnpin& args, const store::Stream& stream,
                                const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(const std::size_t removed, store::unpin(stream, args.group, args.id, call));
  if (removed > 0) return removed;
  return Status::not_found(
      fmt::format("group {} has no pin called {}; `batchloom store pins {}` lists what there is",
                  args.group, args.id, args.stream.location.url));
}

}  // namespace

Status run(const StorePin& args, Runtime& runtime) {
  BL_ASSIGN_OR_RETURN(const auto store, store::OpenStore::open(args.stream.location, runtime));
  const CallOptions call = short_call(runtime);
  BL_ASSIGN_OR_RETURN(const auto stream, store->open_stream(call));
  BL_ASSIGN_OR_RETURN(const store::Pin pin, store::pin_step(*stream, args.request, call));
  Fields fields;
  fields.add("group", pin.name.group)
      .add("id", pin.name.id)
      .add("step", pin.step.value)
      .add("key", store::pin_key(pin.name));
  print_result(fields, args.stream.json);
  return Status::ok();
}

Status run(const StoreUnpin& args, Runtime& runtime) {
  BL_ASSIGN_OR_RETURN(const auto store, store::OpenStore::open(args.stream.location, runtime));
  const CallOptions call = short_call(runtime);
  BL_ASSIGN_OR_RETURN(const auto stream, store->open_stream(call));
  Fields fields;
  fields.add("group", args.group);
  if (args.live) {
    BL_RETURN_IF_ERROR(store::close_live_cursor(*stream, args.group, call));
    fields.add("live", "closed");
  } else {
    BL_ASSIGN_OR_RETURN(const std::size_t removed, remove_pins(args, *stream, call));
    fields.add("id", args.id).add("removed", std::uint64_t{removed});
  }
  print_result(fields, args.stream.json);
  return Status::ok();
}

Status run(const StorePins& args, Runtime& runtime) {
  BL_ASSIGN_OR_RETURN(const auto store, store::OpenStore::open(args.stream.location, runtime));
  const CallOptions call = short_call(runtime);
  BL_ASSIGN_OR_RETURN(const auto stream, store->open_stream(call));
  BL_ASSIGN_OR_RETURN(const auto pins, store::list_pins(*stream, call));
  BL_ASSIGN_OR_RETURN(const auto cursors, store::list_live_cursors(*stream, call));
  store::ManifestReader reader(*stream);
  BL_ASSIGN_OR_RETURN(const store::HeadPtr head, reader.latest(call));
  const store::Step first_step = head->head.first_step;
  for (const store::Pin& pin : pins) print_row(describe(pin, first_step), args.stream.json);
  for (const store::LiveCursor& cursor : cursors) {
    print_row(describe(cursor, first_step), args.stream.json);
  }
  return Status::ok();
}

}  // namespace batchloom::cli
