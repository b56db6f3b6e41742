// SPDX-License-Identifier: Apache-2.0
// What subcommands share.
#include "cli/commands.h"

#include <fmt/format.h>

#include <cstdio>

namespace batchloom::cli {

void print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void print_result(const Fields& fields, bool json) {
  print(json ? fields.to_json() + "\n" : fields.to_text());
}

void print_row(const Fields& fields, bool json) {
  print((json ? fields.to_json() : fields.to_line()) + "\n");
}

Fields describe_entry(const store::Entry& entry) {
  Fields fields;
  fields.add("first_step", entry.first_step.value)
      .add("steps", std::uint64_t{entry.steps})
      .add("producer", entry.producer)
      .add("term", entry.term.value)
      .add("seq", entry.seq.value)
      .add("ranks", std::uint64_t{entry.ranks})
      .add("bytes", entry.size_bytes)
      .add("key", store::data_key(entry.object()));
  return fields;
}

CallOptions short_call(Runtime& runtime) {
  return {.deadline = runtime.now() + std::chrono::seconds(60), .stop = {}};
}

}  // namespace batchloom::cli
