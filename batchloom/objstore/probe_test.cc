// SPDX-License-Identifier: Apache-2.0
// What the probe makes of right stores and of interruptions; wrong stores are in
// wrong_stores_test.cc.
#include "batchloom/objstore/probe.h"

#include <gtest/gtest.h>

#include "batchloom/base/real_runtime.h"
#include "batchloom/base/sim_runtime.h"
#include "batchloom/objstore/faulty_store.h"
#include "batchloom/objstore/forwarding_store_testing.h"
#include "batchloom/objstore/memory_store.h"

namespace batchloom::objstore {
namespace {

class ProbeTest : public testing::Test {
 protected:
  bool store_is_empty() { return memory_.list({}, {}, {}).value()->next_page({}).value().empty(); }

  std::unique_ptr<Runtime> runtime_ = make_real_runtime();
  MemoryStore memory_{*runtime_};
};

TEST_F(ProbeTest, PassesARightStoreAndCleansUp) {
  const auto report = probe(memory_, *runtime_, {}, {});
  ASSERT_TRUE(report.is_ok());
  EXPECT_TRUE(report->verdict().is_ok()) << report->verdict().to_string();
  EXPECT_EQ(report->findings.size(), probe_checks({}).size());
  for (const ProbeFinding& finding : report->findings) {
    EXPECT_EQ(finding.outcome, ProbeOutcome::kPassed) << finding.check << ": " << finding.reason;
  }
  EXPECT_TRUE(report->left_behind.empty());
  EXPECT_TRUE(store_is_empty());
}

/// Whoever uses it may not make one kind of request.
class ForbiddingStore final : public ForwardingStore {
 public:
  ForbiddingStore(ObjectStore& inner, std::string_view forbidden)
      : ForwardingStore(inner), forbidden_(forbidden) {}

  Result<std::optional<ObjectData>> get(std::string_view key, ByteRange range,
                                        const CallOptions& call) override {
    BL_RETURN_IF_ERROR(check("get"));
    return inner_.get(key, range, call);
  }
  Result<PutReply> put(std::string_view key, std::span<const ByteSpan> parts,
                       const PutCondition& condition, const CallOptions& call) override {
    BL_RETURN_IF_ERROR(check("put"));
    return inner_.put(key, parts, condition, call);
  }
  Result<std::unique_ptr<Listing>> list(std::string_view prefix, std::string_view start_after,
                                        const CallOptions& call) override {
    BL_RETURN_IF_ERROR(check("list"));
    return inner_.list(prefix, start_after, call);
  }
  Result<std::vector<Status>> remove(std::span<const std::string> keys,
                                     const CallOptions& call) override {
    BL_RETURN_IF_ERROR(check("remove"));
    return inner_.remove(keys, call);
  }

 private:
  Status check(std::string_view operation) const {
    return operation == forbidden_ ? Status::invalid("403") : Status::ok();
  }

  std::string_view forbidden_;
};

TEST_F(ProbeTest, AMissingPermissionIsNoFaultOfTheStore) {
  for (const std::string_view operation : {"put", "get", "list", "remove"}) {
    ForbiddingStore store(memory_, operation);
    const Status refused = probe(store, *runtime_, {}, {}).status();
    EXPECT_TRUE(refused.is(ErrorKind::kInvalid)) << operation << refused.to_string();
    const std::string says = std::string(operation) + " 'probe/";
    EXPECT_NE(refused.message().find(says), std::string::npos) << refused.to_string();
    EXPECT_NE(refused.message().find("permission"), std::string::npos) << refused.to_string();
  }
}

TEST_F(ProbeTest, WithoutABatchSizeItsRaceDoesNotApply) {
  const auto report = probe(memory_, *runtime_, {.batch_size_bytes = 0}, {});
  ASSERT_TRUE(report.is_ok());
  EXPECT_TRUE(report->verdict().is_ok());
  int not_applicable = 0;
  for (const ProbeFinding& finding : report->findings) {
    if (finding.outcome != ProbeOutcome::kNotApplicable) continue;
    ++not_applicable;
    EXPECT_EQ(finding.check, "racing_creates_batch_size");
  }
  EXPECT_EQ(not_applicable, 1);
}

TEST_F(ProbeTest, AnInterruptionIsAnErrorAndNoVerdict) {
  const auto plan = FaultPlan::make({.script = {{{Operation::kGet, 3}, Fault::kServerError503}}});
  FaultyStore faulty(memory_, *runtime_, plan.value());
  const auto report = probe(faulty, *runtime_, {.batch_size_bytes = 0}, {});
  ASSERT_TRUE(report.is(ErrorKind::kUnavailable));
  EXPECT_NE(report.status().message().find("probe check 'racing_creates_small'"),
            std::string_view::npos);
  EXPECT_TRUE(store_is_empty());
}

TEST_F(ProbeTest, AStopEndsIt) {
  std::stop_source source;
  source.request_stop();
  const auto report =
      probe(memory_, *runtime_, {}, {.deadline = kNever, .stop = source.get_token()});
  EXPECT_TRUE(report.is(ErrorKind::kCancelled));
}

TEST(Probe, UndecidedAnswersInARaceAreNoDefect) {
  SimWorld world(1);
  SimProcess& process = world.add_process("client");
  process.start("main", [&] {
    MemoryStore memory(process);
    const auto plan = FaultPlan::make({.rates = {{Fault::kConflict409, Operation::kPut, 0.2},
                                                 {Fault::kLostReply, Operation::kPut, 0.2},
                                                 {Fault::kThrottled429, Operation::kPut, 0.1}}});
    FaultyStore faulty(memory, process, plan.value());
    for (const StoreCheck& check : probe_checks({.small_rounds = 20})) {
      if (check.name != "racing_creates_small") continue;
      CheckRun run(faulty, process, "probe/", {});
      check.run(run);
      EXPECT_TRUE(run.failures().empty()) << run.failures().front();
      EXPECT_TRUE(run.interruption().is_ok()) << run.interruption().to_string();
    }
    EXPECT_GT(faulty.injected(Fault::kConflict409), 0U);
    EXPECT_GT(faulty.injected(Fault::kLostReply), 0U);
  });
  EXPECT_TRUE(world.run().is_ok());
}

}  // namespace
}  // namespace batchloom::objstore
