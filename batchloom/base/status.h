// SPDX-License-Identifier: Apache-2.0
// Errors as values. `Status` says whether a call succeeded; `Result<T>` carries a value or the
// reason there is none.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace batchloom {

/// What the caller should do next. A kind is added only where a caller would act differently.
enum class ErrorKind : std::uint8_t {
  kInvalid,         ///< Fix the call, the input or the permission; repeating it will not help.
  kNotFound,        ///< What was named does not exist (any more).
  kConflict,        ///< Somebody else changed it first: refresh and retry.
  kFenced,          ///< A newer owner exists: stop for ever.
  kUnavailable,     ///< Back off and retry; also a passed deadline.
  kUnknownOutcome,  ///< The call may or may not have taken effect.
  kCorruption,      ///< Stored bytes are damaged: never retry, tell a person.
  kExhausted,       ///< A budget, a quota or a disk is full.
  kCancelled,       ///< The caller's stop token was triggered.
  kInternal,        ///< A defect in Batchloom.
};

/// Cases of a kind that have a name of their own where errors become exceptions. What a caller does
/// next is still the kind's to say.
enum class ErrorCase : std::uint8_t {
  kNone,
  kDoesNotFit,     ///< Of kInvalid: a sample that no rank, or no group of them, has room for.
  kSplitSamples,   ///< Of kInvalid: samples may lie on several ranks, which a job does not take.
  kResumeMissing,  ///< Of kInvalid: a job that has run before begins without its state.
};

/// The kind's name as users see it: "invalid", "not_found", ...
std::string_view to_string(ErrorKind kind);

/// Success, or an error kind with a message that names the object, the operation, the numbers and
/// the next step. Immutable; cheap to copy; thread-safe.
class [[nodiscard]] Status {
 public:
  /// Success.
  Status() = default;
  Status(ErrorKind kind, std::string message, ErrorCase error_case = ErrorCase::kNone);

  static Status ok() { return {}; }
  static Status invalid(std::string message) { return {ErrorKind::kInvalid, std::move(message)}; }
  static Status not_found(std::string message) {
    return {ErrorKind::kNotFound, std::move(message)};
  }
  static Status does_not_fit(std::string message) {
    return {ErrorKind::kInvalid, std::move(message), ErrorCase::kDoesNotFit};
  }
  static Status resume_missing(std::string message) {
    return {ErrorKind::kInvalid, std::move(message), ErrorCase::kResumeMissing};
  }
  static Status conflict(std::string message) { return {ErrorKind::kConflict, std::move(message)}; }
  static Status fenced(std::string message) { return {ErrorKind::kFenced, std::move(message)}; }
  static Status unavailable(std::string message) {
    return {ErrorKind::kUnavailable, std::move(message)};
  }
  static Status unknown_outcome(std::string message) {
    return {ErrorKind::kUnknownOutcome, std::move(message)};
  }
  static Status corruption(std::string message) {
    return {ErrorKind::kCorruption, std::move(message)};
  }
  static Status exhausted(std::string message) {
    return {ErrorKind::kExhausted, std::move(message)};
  }
  static Status cancelled(std::string message) {
    return {ErrorKind::kCancelled, std::move(message)};
  }
  static Status internal(std::string message) { return {ErrorKind::kInternal, std::move(message)}; }

  bool is_ok() const { return error_ == nullptr; }
  bool is(ErrorKind kind) const { return error_ != nullptr && error_->kind == kind; }

  /// The error's kind. Precondition: not ok.
  ErrorKind kind() const;
  /// kNone on success.
  ErrorCase error_case() const { return error_ ? error_->error_case : ErrorCase::kNone; }
  /// The error's message; empty on success.
  std::string_view message() const {
    return error_ ? std::string_view(error_->message) : std::string_view();
  }
  /// "ok", or "<kind>: <message>".
  std::string to_string() const;

  /// The same error with "<context>: " before its message. Precondition: not ok.
  Status with_context(std::string_view context) const;

 private:
  struct Error {
    ErrorKind kind;
    ErrorCase error_case;
    std::string message;
  };
  std::shared_ptr<const Error> error_;
};

/// A `T`, or the error that prevented it. `value()`, `*` and `->` have `ok()` as their precondition
/// (checked). From a temporary they give the value itself, so that a loop over `f().value()` is
/// sound; a loop over a part of it is not (C++20), and tools/tidy.py refuses it.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Status error);  // Precondition: not ok.

  bool is_ok() const { return state_.index() == 0; }
  bool is(ErrorKind kind) const { return !is_ok() && std::get<1>(state_).is(kind); }
  Status status() const { return is_ok() ? Status::ok() : std::get<1>(state_); }

  T& value() & { return checked(); }
  const T& value() const& { return const_cast<Result*>(this)->checked(); }
  T value() && { return std::move(checked()); }
  T& operator*() & { return checked(); }
  const T& operator*() const& { return const_cast<Result*>(this)->checked(); }
  T operator*() && { return std::move(checked()); }
  T* operator->() { return &checked(); }
  const T* operator->() const { return &const_cast<Result*>(this)->checked(); }

 private:
  T& checked();

  std::variant<T, Status> state_;
};

namespace internal {
[[noreturn]] void result_misused(const Status& status);
}  // namespace internal

template <class T>
Result<T>::Result(Status error) : state_(std::in_place_index<1>, std::move(error)) {
  if (std::get<1>(state_).is_ok()) internal::result_misused(std::get<1>(state_));
}

template <class T>
T& Result<T>::checked() {
  if (!is_ok()) internal::result_misused(std::get<1>(state_));
  return std::get<0>(state_);
}

}  // namespace batchloom

#define BATCHLOOM_CONCAT_(a, b) a##b
#define BATCHLOOM_CONCAT(a, b) BATCHLOOM_CONCAT_(a, b)

/// Returns the status of `expr` from the enclosing function unless it is ok.
#define BL_RETURN_IF_ERROR(expr)                                                \
  do {                                                                          \
    if (::batchloom::Status status_ = (expr); !status_.is_ok()) return status_; \
  } while (false)

/// `BL_ASSIGN_OR_RETURN(auto x, f())`: x gets f()'s value, or the enclosing function returns f()'s
/// error.
#define BL_ASSIGN_OR_RETURN(lhs, expr) \
  BL_ASSIGN_OR_RETURN_(BATCHLOOM_CONCAT(result_, __LINE__), lhs, expr)
#define BL_ASSIGN_OR_RETURN_(result, lhs, expr) \
  auto result = (expr);                         \
  if (!result.is_ok()) return result.status();  \
  lhs = std::move(result).value()
