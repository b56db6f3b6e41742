// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/faults.h"

#include <fmt/format.h>

namespace batchloom::sources {

std::string_view to_string(BadRecordReason reason) {
  switch (reason) {
    case BadRecordReason::kTooLarge: return "too_large";
    case BadRecordReason::kEncoding: return "encoding";
    case BadRecordReason::kSyntax: return "syntax";
    case BadRecordReason::kField: return "field";
    case BadRecordReason::kTokenId: return "token_id";
    case BadRecordReason::kPicture: return "picture";
    case BadRecordReason::kNotText: return "not_text";
    case BadRecordReason::kTokenizer: return "tokenizer";
  }
  return "unknown";
}

std::string to_string(const RecordName& name) {
  return fmt::format("{}: record {} at offset {}", name.shard, name.record, name.offset_bytes);
}

BadRecord bad_record(const RecordName& name, BadRecordReason reason, std::string_view what) {
  return {.reason = reason, .message = fmt::format("{}: {}", to_string(name), what)};
}

Status shard_fault(std::string_view shard, std::uint64_t offset_bytes, std::string_view what) {
  return Status::corruption(fmt::format("{}: offset {}: {}", shard, offset_bytes, what));
}

}  // namespace batchloom::sources
