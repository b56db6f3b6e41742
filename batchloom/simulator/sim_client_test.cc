// SPDX-License-Identifier: Apache-2.0
// A request as three events: what happens between them, and to requests that come late.
#include "batchloom/simulator/sim_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "batchloom/simulator/sim_lab_testing.h"

namespace batchloom::simulator {
namespace {

using objstore::Fault;
using objstore::FaultSettings;
using objstore::ObjectStore;
using objstore::Operation;
using objstore::PutOutcome;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t kClientSeeds = 60;

TEST(SimClient, ACrashedClientMeetsNoFaults) {
  SimLab lab(1, Fault::kLostRequest, Operation::kGet);
  lab.run({[&](SimProcess& process, ObjectStore& client) {
    process.crash();
    EXPECT_TRUE(client.get("k", {}, {}).is(ErrorKind::kCancelled));
    EXPECT_TRUE(client.head("k", {}).is(ErrorKind::kCancelled));
  }});
  EXPECT_THAT(lab.store().faulted_calls(), IsEmpty());
}

TEST(SimClient, TheTraceSeesWhatIsRead) {
  const auto hash = [](const std::string& key, std::string_view text) {
    SimLab lab(1);
    lab.place(key, text);
    lab.run({[](SimProcess&, ObjectStore& client) {
      static_cast<void>(client.get("k", {}, {}));
      static_cast<void>(client.list("", "", {}).value()->next_page({}));
    }});
    return lab.world().trace_hash();
  };
  EXPECT_EQ(hash("k", "a"), hash("k", "a"));
  EXPECT_NE(hash("k", "a"), hash("k", "b"));
  EXPECT_NE(hash("x", "a"), hash("y", "a"));
}

TEST(SimClient, ALatePutOutlivesItsClientAndMeetsWhatIsThereThen) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < kClientSeeds; ++seed) {
    FaultSettings first_put{.seed = seed, .script = {{{Operation::kPut, 0}, Fault::kLateApply}}};
    SimLab lab(seed, first_put);
    lab.run({[&](SimProcess& process, ObjectStore& client) {
      EXPECT_EQ(create(client, "k", "late")->outcome, PutOutcome::kUnknown);
      const bool there = lab.stored("k").has_value();
      process.crash();
      EXPECT_TRUE(create(client, "x", "never").is(ErrorKind::kCancelled));
      if (!there) lab.place("k", "other");
      seen.insert(there ? "before the crash" : "after it");
    }});
    EXPECT_TRUE(lab.stored("k") == "late" || lab.changes().empty());
    EXPECT_EQ(lab.stored("x"), std::nullopt);
  }
  EXPECT_THAT(seen, ElementsAre("after it", "before the crash"));
}

TEST(SimClient, ALateUnconditionalPutComesBackOverAnotherValue) {
  for (const Fault fault : {Fault::kLateApply, Fault::kDoubleApply}) {
    std::set<std::optional<std::string>> seen;
    for (std::uint64_t seed = 0; seed < kClientSeeds; ++seed) {
      SimLab lab(seed, {.seed = seed, .script = {{{Operation::kPut, 0}, fault}}});
      lab.run({[&](SimProcess&, ObjectStore& client) {
        EXPECT_TRUE(overwrite(client, "k", "old").is_ok());
        EXPECT_EQ(overwrite(client, "k", "new")->outcome, PutOutcome::kApplied);
      }});
      seen.insert(lab.stored("k"));
    }
    EXPECT_THAT(seen, ElementsAre("new", "old"));
  }
}

TEST(SimClient, ALateRemovalTakesWhatWasCreatedSince) {
  for (const Fault fault : {Fault::kLateApply, Fault::kDoubleApply}) {
    std::set<bool> stands;
    for (std::uint64_t seed = 0; seed < kClientSeeds; ++seed) {
      SimLab lab(seed, {.seed = seed, .script = {{{Operation::kRemove, 0}, fault}}});
      lab.run({[&](SimProcess&, ObjectStore& client) {
        static_cast<void>(remove(client, {"k"}));
        EXPECT_EQ(create(client, "k", "a")->outcome, PutOutcome::kApplied);
      }});
      stands.insert(lab.stored("k").has_value());
    }
    EXPECT_THAT(stands, ElementsAre(false, true));
  }
}

TEST(SimClient, ACreateThatIsAppliedTwiceWinsOnce) {
  SimLab lab(1, Fault::kDoubleApply, Operation::kPut);
  lab.run(
      {[](SimProcess&, ObjectStore& client) { EXPECT_TRUE(create(client, "k", "a").is_ok()); }});
  EXPECT_THAT(lab.changes(), ElementsAre("k=a"));
}

TEST(SimClient, IssueEffectAndReplyAreEventsOfTheirOwn) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < kClientSeeds; ++seed) {
    SimLab lab(seed);
    bool issued = false;
    bool replied = false;
    lab.run({[&](SimProcess&, ObjectStore& client) {
               issued = true;
               EXPECT_EQ(create(client, "k", "a")->outcome, PutOutcome::kApplied);
               replied = true;
             },
             [&](SimProcess&, ObjectStore& client) {
               for (int i = 0; i < 3; ++i) {
                 const bool issued_before = issued;
                 const bool found = client.head("k", {}).value().has_value();
                 if (issued_before && !found) seen.insert("issued, without effect");
                 if (found && !replied) seen.insert("in effect, without a reply");
               }
             }});
  }
  EXPECT_THAT(seen, ElementsAre("in effect, without a reply", "issued, without effect"));
}

TEST(SimClient, AStopOrADeadlineLeavesAnIssuedPutUnknown) {
  std::set<bool> stored_at_return;
  for (std::uint64_t seed = 0; seed < kClientSeeds; ++seed) {
    SimLab lab(seed);
    std::stop_source source;
    lab.run({[&](SimProcess& process, ObjectStore& client) {
      lab.world().post([&] { source.request_stop(); });
      const auto reply = create(client, "k", "a", {.stop = source.get_token()});
      ASSERT_TRUE(reply.is_ok()) << reply.status().to_string();
      if (reply->outcome == PutOutcome::kUnknown) stored_at_return.insert(!!lab.stored("k"));
      EXPECT_TRUE(create(client, "x", "a", {.stop = source.get_token()}).is_ok() ||
                  source.stop_requested());
      source.request_stop();
      EXPECT_TRUE(create(client, "y", "a", {.stop = source.get_token()}).is(ErrorKind::kCancelled));
      const CallOptions soon{.deadline = process.now() + Duration(1)};
      EXPECT_TRUE(overwrite(client, "z", "a", soon).is_ok());
      EXPECT_TRUE(
          create(client, "y", "a", {.deadline = process.now()}).is(ErrorKind::kUnavailable));
    }});
    EXPECT_EQ(lab.stored("k"), "a");
    EXPECT_EQ(lab.stored("y"), std::nullopt);
    EXPECT_EQ(lab.stored("z"), "a");
  }
  EXPECT_THAT(stored_at_return, ElementsAre(false, true));
}

TEST(SimClient, ACrashCancelsACallButNotItsRequest) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < kClientSeeds; ++seed) {
    SimLab lab(seed);
    lab.place("old", "1");
    std::string heard = "replied";
    lab.run({[&](SimProcess& process, ObjectStore& client) {
      lab.world().post([&] { process.crash(); });
      const auto one = process.spawn("put", [&](const std::stop_token&) {
        if (create(client, "k", "a").is(ErrorKind::kCancelled)) heard = "cancelled";
      });
      const auto two = process.spawn(
          "remove", [&](const std::stop_token&) { static_cast<void>(remove(client, {"old"})); });
      one->join();
      two->join();
    }});
    seen.insert(heard + (lab.stored("k") ? ", stored" : "") + (lab.stored("old") ? "" : ", gone"));
  }
  EXPECT_TRUE(seen.contains("cancelled, stored, gone"));
  EXPECT_TRUE(seen.contains("cancelled")) << "the crash came before both requests";
  for (const std::string& outcome : seen) EXPECT_FALSE(outcome == "replied") << "without effect";
}

TEST(SimClient, AListingGoesOnWhileObjectsComeAndGo) {
  std::set<std::size_t> sizes;
  for (std::uint64_t seed = 0; seed < kClientSeeds; ++seed) {
    SimLab lab(seed);
    std::vector<std::string> leave;
    for (int i = 0; i < 10; ++i) {
      lab.place("a/stays" + std::to_string(i), "1");
      leave.push_back("a/leaves" + std::to_string(i));
      lab.place(leave.back(), "1");
    }
    lab.place("b/other", "1");
    std::vector<std::string> shown;
    lab.run({[&](SimProcess&, ObjectStore& client) {
               const auto listing = client.list("a/", "", {}).value();
               for (;;) {
                 const auto page = listing->next_page({}).value();
                 if (page.empty()) break;
                 EXPECT_LE(page.size(), 5U);
                 for (const auto& object : page) shown.push_back(object.key);
               }
             },
             [&](SimProcess&, ObjectStore& client) {
               static_cast<void>(remove(client, leave));
               for (int i = 0; i < 5; ++i)
                 EXPECT_TRUE(create(client, "a/comes" + std::to_string(i), "1").is_ok());
             }});
    EXPECT_EQ(std::set<std::string>(shown.begin(), shown.end()).size(), shown.size());
    EXPECT_EQ(std::ranges::count_if(
                  shown, [](const std::string& key) { return key.starts_with("a/stays"); }),
              10);
    EXPECT_EQ(std::ranges::count(shown, "b/other"), 0);
    sizes.insert(shown.size());
  }
  EXPECT_GT(sizes.size(), 5U) << "pages see what happens between them";
}
}  // namespace
}  // namespace batchloom::simulator
