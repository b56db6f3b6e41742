// SPDX-License-Identifier: Apache-2.0
// Checks must see what is wrong: here the ways in which no store of wrong_stores_testing.h is.
#include "batchloom/objstore/check_run.h"

#include <gtest/gtest.h>

#include "batchloom/base/real_runtime.h"
#include "batchloom/objstore/forwarding_store_testing.h"
#include "batchloom/objstore/memory_store.h"
#include "batchloom/objstore/race.h"

namespace batchloom::objstore {
namespace {

/// Shows all its keys twice.
class Stutterer final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  Result<std::unique_ptr<Listing>> list(std::string_view prefix, std::string_view start_after,
                                        const CallOptions& call) override {
    BL_ASSIGN_OR_RETURN(auto once, inner_.list(prefix, start_after, call));
    BL_ASSIGN_OR_RETURN(auto again, inner_.list(prefix, start_after, call));
    return std::unique_ptr<Listing>(std::make_unique<Pages>(std::move(once), std::move(again)));
  }

 private:
  class Pages final : public Listing {
   public:
    Pages(std::unique_ptr<Listing> once, std::unique_ptr<Listing> again)
        : once_(std::move(once)), again_(std::move(again)) {}
    Result<std::vector<ListedObject>> next_page(const CallOptions& call) override {
      BL_ASSIGN_OR_RETURN(auto page, once_->next_page(call));
      if (!page.empty()) return page;
      return again_->next_page(call);
    }

   private:
    std::unique_ptr<Listing> once_;
    std::unique_ptr<Listing> again_;
  };
};

class CheckRunTest : public testing::Test {
 protected:
  std::unique_ptr<Runtime> runtime_ = make_real_runtime();
  MemoryStore memory_{*runtime_};
  CheckRun run_{memory_, *runtime_, "check/", {}};
};

TEST_F(CheckRunTest, SeesAKeyThatIsListedTwice) {
  Stutterer stutterer(memory_);
  CheckRun run(stutterer, *runtime_, "check/", {});
  run.put(run.key("a"), as_bytes("x"), PutCondition::absent());
  run.expect_list(run.prefix(), {}, {run.key("a")});
  EXPECT_EQ(run.failures().size(), 1U);
}

TEST_F(CheckRunTest, SeesWrongOutcomesAndContents) {
  const std::string key = run_.key("a");
  run_.put(key, as_bytes("x"), PutCondition::absent(), PutOutcome::kConditionFailed);
  EXPECT_EQ(run_.failures().size(), 1U);
  run_.expect_content(key, as_bytes("y"));
  EXPECT_EQ(run_.failures().size(), 2U);
  run_.expect_content(run_.key("missing"), as_bytes("x"));
  EXPECT_EQ(run_.failures().size(), 3U);
  run_.expect_missing(key);
  EXPECT_EQ(run_.failures().size(), 4U);
  run_.expect_list(run_.prefix(), {}, {run_.key("b")});  // Misses b, and shows a.
  EXPECT_EQ(run_.failures().size(), 6U);
  EXPECT_TRUE(run_.interruption().is_ok());
}

TEST_F(CheckRunTest, TellsInterruptionsFromFailures) {
  run_.note_error(Status::invalid("no"));
  EXPECT_EQ(run_.failures().size(), 1U);
  run_.note_error(Status::unavailable("first"));
  run_.note_error(Status::cancelled("second"));
  EXPECT_EQ(run_.failures().size(), 1U);
  EXPECT_EQ(run_.interruption().message(), "first");
}

TEST_F(CheckRunTest, RemovesAllItsKeys) {
  run_.put(run_.key("a"), as_bytes("x"), PutCondition::absent());
  run_.put(run_.key("b"), as_bytes("x"), PutCondition::absent());
  EXPECT_TRUE(run_.remove_all({}).empty());
  run_.expect_list({}, {}, {});
  EXPECT_TRUE(run_.failures().empty());
}

/// A race of two for "check/key", which holds the bytes of racer `holder`.
class JudgeRaceTest : public CheckRunTest {
 protected:
  bool accepts(int holder, const std::vector<RaceEnd>& ends) {
    CheckRun run(memory_, *runtime_, "check/", {});
    const std::string key = run.key("key");
    run.put(key, bodies_.of(holder), PutCondition::none());
    judge_race(run, key, bodies_, ends);
    return run.failures().empty();
  }

  const RaceBodies bodies_{2, 100};
};

TEST_F(JudgeRaceTest, WantsOneWinnerAndItsBytes) {
  constexpr auto kWon = PutOutcome::kApplied;
  constexpr auto kLost = PutOutcome::kConditionFailed;
  constexpr auto kUnknown = PutOutcome::kUnknown;
  EXPECT_TRUE(accepts(0, {kWon, kLost}));
  EXPECT_FALSE(accepts(1, {kWon, kLost}));
  EXPECT_FALSE(accepts(0, {kWon, kWon}));
  EXPECT_FALSE(accepts(0, {kLost, kLost}));
  EXPECT_TRUE(accepts(1, {kLost, kUnknown}));
  EXPECT_FALSE(accepts(0, {kLost, kUnknown}));
  EXPECT_FALSE(accepts(1, {kWon, kUnknown}));
  EXPECT_TRUE(accepts(0, {kWon, std::nullopt}));
  EXPECT_FALSE(accepts(0, {kLost, std::nullopt}));
}

TEST_F(JudgeRaceTest, RacersWriteOtherBytesEverywhere) {
  EXPECT_EQ(bodies_.of(0).size(), 100U);
  int equal = 0;
  for (std::size_t i = 0; i < 100; ++i) equal += bodies_.of(0)[i] == bodies_.of(1)[i];
  EXPECT_LT(equal, 10);  // 100 / 256 by chance.
}

}  // namespace
}  // namespace batchloom::objstore
