// SPDX-License-Identifier: Apache-2.0
// Every fault at every call, then a power cut or a killed process, then a new instance. The oracle
// knows, for each key, the states that the answers so far allow.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cerrno>
#include <set>

#include "batchloom/base/log.h"
#include "batchloom/objstore/fault_driver_testing.h"
#include "batchloom/objstore/local_store.h"
#include "batchloom/objstore/local_store_testing.h"
#include "batchloom/objstore/power_cut_testing.h"

namespace batchloom::objstore {
namespace {

using State = std::optional<std::string>;  // Of a key: its object, or none.

enum class Action { kCreate, kReplace, kMatch, kMatchStale, kRemove };

struct Step {
  Action action;
  std::string key;
};

/// Two folders, one made on demand; each action on keys that exist and on keys that do not.
const std::vector<Step> kWorkload = {
    {Action::kCreate, "m/1"},  {Action::kCreate, "m/1"},     {Action::kReplace, "m/1"},
    {Action::kMatch, "m/1"},   {Action::kMatchStale, "m/1"}, {Action::kReplace, "d/7f/new"},
    {Action::kMatch, "m/2"},   {Action::kCreate, "FORMAT"},  {Action::kRemove, "m/1"},
    {Action::kRemove, "m/1"},  {Action::kCreate, "m/1"},     {Action::kRemove, "d/7f/new"},
    {Action::kRemove, "x/no"}, {Action::kReplace, "m/2"},    {Action::kMatch, "m/2"},
};

/// A machine, the store on it, and what may be true.
class Machine {
 public:
  explicit Machine(FsyncPolicy fsync) : fsync_(fsync) {}

  PowerCutFileOps& files() { return files_; }

  /// A process starts. Not for ever: a fault may strike here too.
  void start() {
    store_.reset();
    auto made = LocalStore::create({.root = "/store", .fsync = fsync_}, files_, runtime_);
    if (made.is_ok()) store_ = std::move(made).value();
  }

  void run(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      if (store_ != nullptr) run(step);
    }
  }

  /// After a fault and a restart: only allowed states, nothing torn, and a working store.
  void check(const std::set<std::string>& keys) {
    files_.faults().clear();
    start();
    ASSERT_NE(store_, nullptr);
    std::map<std::string, std::uint64_t> found;
    for (const std::string& key : keys) {
      const auto now = get_text(*store_, key);
      ASSERT_TRUE(now.is_ok()) << now.status().to_string();
      EXPECT_TRUE(allowed(key).contains(*now))
          << key << " is " << testing::PrintToString(now->value_or("(missing)"));
      if (*now) found[key] = (*now)->size();
    }
    EXPECT_EQ(list_all(*store_).value(), found);
    const auto temp = files_.open_folder("/store/.tmp").value();
    EXPECT_TRUE(temp == nullptr || !temp->next().value()) << "a temporary file was not swept";
    const auto reply = put_text(*store_, "after", "works", PutCondition::absent());
    EXPECT_TRUE(reply.is_ok() && reply->outcome == PutOutcome::kApplied);
  }

 private:
  /// At first no object exists.
  std::set<State>& allowed(const std::string& key) {
    return states_.try_emplace(key, std::set<State>{std::nullopt}).first->second;
  }

  void run(const Step& step) {
    if (step.action == Action::kRemove) return remove(step.key);
    const std::string value = "value " + std::to_string(++values_) + " of " + step.key;
    if (step.action == Action::kCreate) return put(step.key, value, PutCondition::absent());
    if (step.action == Action::kReplace) return put(step.key, value, PutCondition::none());
    if (step.action == Action::kMatchStale) {
      return put(step.key, value, PutCondition::matches(Etag{"stale"}));
    }
    const auto present = store_->get(step.key, {}, {});
    if (!present.is_ok()) return;
    const State now = *present ? State(as_text((*present)->bytes)) : State();
    EXPECT_TRUE(allowed(step.key).contains(now)) << "read " << now.value_or("(missing)");
    const Etag etag = *present ? *(*present)->etag : Etag{"none"};
    put(step.key, value, PutCondition::matches(etag));
  }

  void put(const std::string& key, const std::string& value, const PutCondition& condition) {
    const auto reply = put_text(*store_, key, value, condition);
    if (!reply.is_ok()) return;  // Surely not applied: nothing else is allowed now.
    std::set<State>& states = allowed(key);
    switch (reply->outcome) {
      case PutOutcome::kApplied:
        EXPECT_TRUE(!condition.is_absent() || states.contains(std::nullopt)) << key;
        states = {value};
        break;
      case PutOutcome::kConditionFailed:
        EXPECT_TRUE(!condition.is_absent() || states != std::set<State>{std::nullopt}) << key;
        break;
      case PutOutcome::kUnknown:
        states.insert(value);
        EXPECT_FALSE(reply->detail.empty());
        EXPECT_TRUE(store_->get(key, {}, {}).is(ErrorKind::kCorruption))
            << "an instance in doubt must not answer";
        break;
    }
  }

  void remove(const std::string& key) {
    if (remove_key(*store_, key).is_ok()) {
      allowed(key) = {std::nullopt};
    } else {
      allowed(key).insert(std::nullopt);
    }
  }

  const FsyncPolicy fsync_;
  PowerCutFileOps files_;
  ManualRuntime runtime_;
  std::unique_ptr<LocalStore> store_;
  std::map<std::string, std::set<State>> states_;
  int values_ = 0;
};

std::set<std::string> keys_of(const std::vector<Step>& steps) {
  std::set<std::string> keys;
  for (const Step& step : steps) keys.insert(step.key);
  return keys;
}

/// False where the fault never came.
bool crash_once(const std::vector<Step>& steps, const FaultRun& run, FsyncPolicy fsync) {
  set_log_level(LogLevel::kError);  // A failed sweep warns each time.
  Machine machine(fsync);
  run.arm(machine.files().faults());
  machine.start();
  machine.run(steps);
  const bool met = machine.files().faults().met() > 0;
  if (run.power_cut_seed) machine.files().power_cut(*run.power_cut_seed);
  machine.check(keys_of(steps));
  return met;
}

class LocalCrash : public testing::TestWithParam<NamedFault> {};

TEST_P(LocalCrash, LosesNothingAtAnyCall) {
  const std::uint64_t cuts_per_call = GetParam().lasts() ? 4 : 20;
  const std::uint64_t calls = at_every_call(GetParam(), cuts_per_call, [](const FaultRun& run) {
    // What is not synced may be lost with the power, but not with the process.
    if (!run.power_cut_seed) crash_once(kWorkload, run, FsyncPolicy::kNone);
    return crash_once(kWorkload, run, FsyncPolicy::kAlways);
  });
  EXPECT_GT(calls, 100u) << "the workload should make many calls";
}

std::string name_of(const testing::TestParamInfo<NamedFault>& fault) {
  return fault.param.name;
}

INSTANTIATE_TEST_SUITE_P(EveryFault, LocalCrash, testing::ValuesIn(faults_that_happen_once()),
                         name_of);
INSTANTIATE_TEST_SUITE_P(LastingFaults, LocalCrash, testing::ValuesIn(faults_that_last()), name_of);

RC_GTEST_PROP(LocalCrashProperty, LosesNothingInAnyWorkload, ()) {
  const auto key = rc::gen::element<std::string>("m/1", "m/2", "d/00/x", "d/01/x", "FORMAT");
  const auto action = rc::gen::element(Action::kCreate, Action::kReplace, Action::kMatch,
                                       Action::kMatchStale, Action::kRemove);
  const auto steps = *rc::gen::container<std::vector<Step>>(rc::gen::map(
      rc::gen::pair(action, key), [](const auto& pair) { return Step{pair.first, pair.second}; }));
  const FileFault fault{.error = *rc::gen::element(ENOSPC, EACCES, EIO),
                        .takes_effect = false,
                        .power_off = *rc::gen::arbitrary<bool>()};
  const auto index = *rc::gen::inRange<std::uint64_t>(0, 20 + 12 * steps.size());
  const FaultRun run{.fault = {.name = "any", .fault = fault},
                     .index = index,
                     .power_cut_seed = *rc::gen::arbitrary<std::uint64_t>()};
  crash_once(steps, run, FsyncPolicy::kAlways);
  RC_ASSERT(!testing::Test::HasFailure());
}

}  // namespace
}  // namespace batchloom::objstore
