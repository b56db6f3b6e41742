// SPDX-License-Identifier: Apache-2.0
// What subcommands share.
#include "cli/commands.h"

#include <fmt/format.h>

#include <cstdio>

#include "batchloom/store/frame.h"

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

Fields describe_membership(const store::MembershipRow& row) {
  const std::size_t keys_bytes =
      row.ref ? row.ref->size_bytes - store::kFrameBytes : row.inline_keys.size();
  Fields fields;
  fields.add("membership_from_step", row.from_step.value)
      .add("digest", row.digest.to_string())
      .add("producer", row.producer)
      .add("term", row.term.value)
      .add("keys_bytes", std::uint64_t{keys_bytes});
  return fields;
}

CallOptions short_call(Runtime& runtime) {
  return {.deadline = runtime.now() + std::chrono::seconds(60), .stop = {}};
}

}  // namespace batchloom::cli
