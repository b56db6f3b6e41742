// SPDX-License-Identifier: Apache-2.0
#include "batchloom/base/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <type_traits>

namespace batchloom {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return Status::invalid("half of an odd number: " + std::to_string(n));
  return n / 2;
}

Result<int> quarter(int n) {
  BL_ASSIGN_OR_RETURN(const int once, half(n));
  BL_ASSIGN_OR_RETURN(const int twice, half(once));
  return twice;
}

Status check_quarter(int n) {
  BL_RETURN_IF_ERROR(quarter(n).status());
  return Status::ok();
}

TEST(Status, DefaultIsOk) {
  const Status status;
  EXPECT_TRUE(status.is_ok());
  EXPECT_FALSE(status.is(ErrorKind::kInvalid));
  EXPECT_EQ(status.message(), "");
  EXPECT_EQ(status.to_string(), "ok");
}

TEST(Status, EveryFactoryHasItsKindAndItsName) {
  const Status all[] = {
      Status::invalid("m"),    Status::not_found("m"),   Status::conflict("m"),
      Status::fenced("m"),     Status::unavailable("m"), Status::unknown_outcome("m"),
      Status::corruption("m"), Status::exhausted("m"),   Status::cancelled("m"),
      Status::internal("m"),
  };
  const std::string_view names[] = {"invalid",     "not_found",       "conflict",   "fenced",
                                    "unavailable", "unknown_outcome", "corruption", "exhausted",
                                    "cancelled",   "internal"};
  std::set<ErrorKind> kinds;
  for (std::size_t i = 0; i < std::size(all); ++i) {
    EXPECT_FALSE(all[i].is_ok());
    EXPECT_TRUE(all[i].is(all[i].kind()));
    EXPECT_EQ(to_string(all[i].kind()), names[i]);
    EXPECT_EQ(all[i].to_string(), std::string(names[i]) + ": m");
    kinds.insert(all[i].kind());
  }
  EXPECT_EQ(kinds.size(), std::size(all));
}

TEST(Status, CasesAreOfAKindAndOutliveContext) {
  for (const Status& status : {Status::does_not_fit("m"), Status::resume_missing("m")}) {
    EXPECT_TRUE(status.is(ErrorKind::kInvalid));
    EXPECT_EQ(status.to_string(), "invalid: m");
    EXPECT_EQ(status.with_context("c").error_case(), status.error_case());
  }
  EXPECT_EQ(Status::does_not_fit("m").error_case(), ErrorCase::kDoesNotFit);
  EXPECT_EQ(Status::resume_missing("m").error_case(), ErrorCase::kResumeMissing);
  EXPECT_EQ(Status::invalid("m").error_case(), ErrorCase::kNone);
  EXPECT_EQ(Status().error_case(), ErrorCase::kNone);
}

TEST(Status, ContextGoesBeforeTheMessage) {
  const Status inner = Status::not_found("step 7 was trimmed");
  const Status outer = inner.with_context("open ./stream");
  EXPECT_EQ(outer.to_string(), "not_found: open ./stream: step 7 was trimmed");
  EXPECT_EQ(inner.message(), "step 7 was trimmed");
}

TEST(Result, CarriesAValueOrAnError) {
  EXPECT_EQ(half(4).value(), 2);
  EXPECT_TRUE(half(4).status().is_ok());
  EXPECT_TRUE(half(3).is(ErrorKind::kInvalid));
  EXPECT_FALSE(half(4).is(ErrorKind::kInvalid));
  EXPECT_EQ(half(3).status().message(), "half of an odd number: 3");
}

TEST(Result, HoldsWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  ASSERT_TRUE(result.is_ok());
  EXPECT_EQ(**result, 5);
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 5);
}

TEST(Result, MacrosReturnTheFirstError) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_EQ(quarter(6).status().message(), "half of an odd number: 3");
  EXPECT_TRUE(check_quarter(8).is_ok());
  EXPECT_TRUE(check_quarter(5).is(ErrorKind::kInvalid));
}

TEST(ResultDeath, AnErrorHasNoValue) {
  EXPECT_DEATH(static_cast<void>(half(3).value()), "check failed: .*half of an odd number: 3");
  EXPECT_DEATH(static_cast<void>(*half(3)), "check failed");
  EXPECT_DEATH(static_cast<void>(Result<int>{Status::ok()}), "made from an ok Status");
  EXPECT_DEATH(static_cast<void>(Status::ok().kind()), "called on success");
}

static_assert(!std::is_default_constructible_v<Result<int>>);

}  // namespace
}  // namespace batchloom
