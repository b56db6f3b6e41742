// SPDX-License-Identifier: Apache-2.0
// `batchloom store init`
#include <fmt/format.h>

#include "cli/commands.h"

namespace batchloom::cli {

Status run(const StoreInit& args, Runtime& runtime) {
  BL_ASSIGN_OR_RETURN(const auto store, store::OpenStore::create(args.stream.location, runtime));
  const auto made =
      store::init_stream(store->deps(), "batchloom " BATCHLOOM_VERSION, short_call(runtime));
  if (!made.is_ok()) return made.status().with_context(args.stream.location.url);
  Fields fields;
  fields.add("uuid", made->uuid.to_string()).add("stream", made->created ? "created" : "exists");
  print_result(fields, args.stream.json);
  return Status::ok();
}

}  // namespace batchloom::cli
