// SPDX-License-Identifier: Apache-2.0
#include "batchloom/base/status.h"

#include <cstdio>
#include <cstdlib>

#include "batchloom/base/check.h"

namespace batchloom {

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalid: return "invalid";
    case ErrorKind::kNotFound: return "not_found";
    case ErrorKind::kConflict: return "conflict";
    case ErrorKind::kFenced: return "fenced";
    case ErrorKind::kUnavailable: return "unavailable";
    case ErrorKind::kUnknownOutcome: return "unknown_outcome";
    case ErrorKind::kCorruption: return "corruption";
    case ErrorKind::kExhausted: return "exhausted";
    case ErrorKind::kCancelled: return "cancelled";
    case ErrorKind::kInternal: return "internal";
  }
  return "internal";
}

Status::Status(ErrorKind kind, std::string message, ErrorCase error_case)
    : error_(std::make_shared<const Error>(Error{kind, error_case, std::move(message)})) {}

ErrorKind Status::kind() const {
  BL_CHECK(error_ != nullptr, "Status::kind() called on success");
  return error_->kind;
}

std::string Status::to_string() const {
  if (is_ok()) return "ok";
  std::string text(batchloom::to_string(error_->kind));
  return text.append(": ").append(error_->message);
}

Status Status::with_context(std::string_view context) const {
  std::string text(context);
  return {kind(), text.append(": ").append(message()), error_case()};
}

namespace internal {

void result_misused(const Status& status) {
  check_failed("result.is_ok()", __FILE__, __LINE__,
               status.is_ok() ? "a Result was made from an ok Status" : status.to_string());
}

}  // namespace internal
}  // namespace batchloom
