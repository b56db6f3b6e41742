// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/trim_fixture_testing.h"

#include <gmock/gmock.h>

#include <utility>

#include "batchloom/base/check.h"
#include "batchloom/store/head_edit.h"
#include "batchloom/store/trim.h"
#include "batchloom/store/verify.h"

namespace batchloom::store {
namespace {

using objstore::Operation;

void commit(const Stream& stream, const std::function<Head(const Head&)>& next) {
  ManifestReader reader(stream);
  const auto receipt = commit_edit(
      stream, reader,
      [&](const Head& head) -> Result<std::optional<Head>> { return std::optional(next(head)); },
      {});
  BL_CHECK(receipt.is_ok() && receipt->committed, "nobody else writes");
}

}  // namespace

void TrimTest::grow(std::uint64_t count, std::uint32_t steps) {
  const auto session = open_session(*other_, "p");
  for (Seq seq = session->next_seq(), end = seq + count; seq < end; ++seq) {
    const std::array batch = {upload_batch(*session, seq, std::to_string(seq.value), steps)};
    BL_CHECK(session->commit(batch, {}).is_ok(), "nobody else writes");
  }
}

Pin TrimTest::pin(Step step, const std::string& id) {
  return pin_step(*other_, {.group = "g", .id = id, .step = step}, {}).value();
}

TrimReport TrimTest::run_trim(const Stream& stream) {
  ManifestReader reader(stream);
  return trim(stream, reader, {}).value();
}

void TrimTest::expect_sound() {
  const auto report = verify_stream(*other_, VerifyDepth::kManifest, {});
  ASSERT_TRUE(report.is_ok()) << report.status().to_string();
  EXPECT_THAT(report->problems, testing::IsEmpty());
}

TrimIntent TrimTest::announce(Step step) {
  commit(*other_, [step](const Head& head) { return propose_trim_intent(head, step); });
  return newest(*other_)->head.trim_intent.value();
}

void TrimTest::complete(Step step) {
  commit(*other_, [step](const Head& head) { return complete_trim(head, step, Safeguards()); });
}

void TrimTest::put(const std::string& key, const Bytes& bytes) {
  ASSERT_TRUE(objstore::put_bytes(memory_, key, bytes, objstore::PutCondition::none(), {}).is_ok());
}

void TrimTest::before(std::size_t n, Operation operation, const std::string& prefix,
                      std::function<void()> act) {
  if (n > 1) objects_.next({.operation = operation, .prefix = prefix, .times = n - 1});
  objects_.next({.operation = operation, .prefix = prefix, .before = std::move(act)});
}

void TrimTest::before_intent(std::function<void()> act) {
  before(1, Operation::kPut, "m/", std::move(act));
}

// Each listing is two: of pins, and of live cursors.
void TrimTest::before_second_listing(std::function<void()> act) {
  before(3, Operation::kList, "pin/", std::move(act));
}

void TrimTest::before_completion(std::function<void()> act) {
  before(2, Operation::kPut, "m/", std::move(act));
}

}  // namespace batchloom::store
