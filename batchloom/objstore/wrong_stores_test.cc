// SPDX-License-Identifier: Apache-2.0
// The conformance suite and the probe must catch each wrong store, by the check meant for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "batchloom/base/real_runtime.h"
#include "batchloom/objstore/conformance_testing.h"
#include "batchloom/objstore/memory_store.h"
#include "batchloom/objstore/probe.h"
#include "batchloom/objstore/wrong_stores_testing.h"

namespace batchloom::objstore {
namespace {

class WrongBackend final : public TestBackend {
 public:
  WrongBackend(Runtime& runtime, Defect defect)
      : memory_(runtime, {.page_size = 10}), wrong_(make_wrong_store(defect, memory_, runtime)) {}
  ObjectStore& store() override { return *wrong_; }

 private:
  MemoryStore memory_;
  std::unique_ptr<ObjectStore> wrong_;
};

BackendFactory wrong_factory(Defect defect) {
  return {.make = [defect](
                      Runtime& runtime) { return std::make_unique<WrongBackend>(runtime, defect); },
          .shared_by_processes = false,
          .page_keys = 10};
}

using Names = std::set<std::string>;

/// The conformance checks that a store with `defect` fails.
Names failed_checks(Defect defect) {
  const BackendFactory factory = wrong_factory(defect);
  Names failed;
  for (const ConformanceCheck& check : conformance_checks(factory)) {
    if (run_conformance_check(factory, check)) failed.insert(check.name);
  }
  return failed;
}

/// The first probe check that it fails.
std::string probe_refuses(Defect defect) {
  const auto runtime = make_real_runtime();
  WrongBackend backend(*runtime, defect);
  const auto report = probe(backend.store(), *runtime, {.batch_size_bytes = 100'000}, {});
  const Status verdict = report.value().verdict();
  EXPECT_TRUE(verdict.is(ErrorKind::kInvalid));
  for (const ProbeFinding& finding : report->findings) {
    if (finding.outcome != ProbeOutcome::kFailed) continue;
    EXPECT_FALSE(finding.reason.empty());
    EXPECT_NE(verdict.message().find("'" + finding.check + "'"), std::string_view::npos)
        << verdict.to_string();
    return finding.check;
  }
  return "none";
}

TEST(WrongStores, IgnoringConditionsIsCaught) {
  EXPECT_EQ(failed_checks(Defect::kIgnoresConditions),
            (Names{"create_twice", "empty_object", "if_match_missing_key", "if_match_wrong",
                   "racing_creates_batch_size", "racing_creates_small"}));
  EXPECT_EQ(probe_refuses(Defect::kIgnoresConditions), "create_twice");
}

TEST(WrongStores, SeveralWinnersAreCaughtOnlyByRaces) {
  EXPECT_EQ(failed_checks(Defect::kSeveralWinners),
            (Names{"racing_creates_batch_size", "racing_creates_small"}));
  EXPECT_EQ(probe_refuses(Defect::kSeveralWinners), "racing_creates_small");
}

TEST(WrongStores, AWrongRangeIsCaught) {
  EXPECT_EQ(failed_checks(Defect::kWrongRange), Names{"ranged_reads"});
  EXPECT_EQ(probe_refuses(Defect::kWrongRange), "ranged_reads");
}

TEST(WrongStores, AListingThatMissesAFreshKeyIsCaught) {
  EXPECT_EQ(failed_checks(Defect::kListMissesFresh),
            (Names{"list_after_put", "list_after_remove", "list_pages", "list_prefixes",
                   "list_start_after"}));
  EXPECT_EQ(probe_refuses(Defect::kListMissesFresh), "list_after_put");
}

TEST(WrongStores, AListingThatLosesAReplacedKeyIsCaught) {
  EXPECT_EQ(failed_checks(Defect::kListLosesReplaced), Names{"list_while_changing"});
}

}  // namespace
}  // namespace batchloom::objstore
