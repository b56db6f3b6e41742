// SPDX-License-Identifier: Apache-2.0
// `batchloom store ls`
#include "batchloom/store/manifest_reader.h"
#include "batchloom/store/segment_reader.h"
#include "cli/commands.h"

namespace batchloom::cli {

Status run(const StoreLs& args, Runtime& runtime) {
  BL_ASSIGN_OR_RETURN(const auto store, store::OpenStore::open(args.stream.location, runtime));
  BL_ASSIGN_OR_RETURN(const auto stream, store->open_stream(short_call(runtime)));
  store::ManifestReader reader(*stream);
  BL_ASSIGN_OR_RETURN(const store::HeadPtr newest, reader.latest(short_call(runtime)));
  const store::Head& head = newest->head;
  store::SegmentReader segments(*stream);
  store::Step step = args.from.value_or(head.first_step);
  // Asking for the next step is no error: nothing has been committed there yet.
  for (std::uint64_t shown = 0; step != head.next_step && shown < args.limit; ++shown) {
    BL_ASSIGN_OR_RETURN(const store::Entry entry, segments.find(head, step, short_call(runtime)));
    print_row(describe_entry(entry), args.stream.json);
    step = entry.end_step();
  }
  return Status::ok();
}

}  // namespace batchloom::cli
