// SPDX-License-Identifier: Apache-2.0
#include "batchloom/objstore/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "batchloom/objstore/race.h"

namespace batchloom::objstore {
namespace {

constexpr std::size_t kSmallBytes = 4096;
constexpr Duration kCleanUpTime = std::chrono::seconds(10);

void create_twice(CheckRun& run) {
  const std::string key = run.key("object");
  run.put(key, as_bytes("first"), PutCondition::absent());
  run.put(key, as_bytes("second"), PutCondition::absent(), PutOutcome::kConditionFailed);
  run.expect_content(key, as_bytes("first"));
}

void race(CheckRun& run, std::size_t size_bytes, int racers, int rounds) {
  if (size_bytes == 0) return run.skip("no batch size was given");
  const RaceBodies bodies(racers, size_bytes);
  for (int round = 0; round < rounds && run.failures().empty(); ++round) {
    race_tasks(run, run.key(fmt::format("race-{}", round)), bodies);
  }
}

void if_match_right(CheckRun& run) {
  const std::string key = run.key("object");
  const auto created = run.put(key, as_bytes("first"), PutCondition::absent());
  const auto read = run.get(key);
  if (!created || !read || !read->etag) return run.fail("no etag to match against");
  const auto replaced = run.put(key, as_bytes("second"), PutCondition::matches(*read->etag));
  run.expect_content(key, as_bytes("second"));
  if (!replaced) return;
  run.put(key, as_bytes("third"), PutCondition::matches(*replaced));
  run.expect_content(key, as_bytes("third"));
}

void if_match_wrong(CheckRun& run) {
  const std::string key = run.key("object");
  const auto old = run.put(key, as_bytes("first"), PutCondition::absent());
  if (!old) return run.fail("no etag to match against");
  run.put(key, as_bytes("second"), PutCondition::none());
  run.put(key, as_bytes("third"), PutCondition::matches(*old), PutOutcome::kConditionFailed);
  run.expect_content(key, as_bytes("second"));
}

void if_match_missing_key(CheckRun& run) {
  const std::string other = run.key("other");
  const auto tag = run.put(other, as_bytes("content"), PutCondition::absent());
  if (!tag) return run.fail("no etag to match against");
  const std::string key = run.key("missing");
  run.put(key, as_bytes("content"), PutCondition::matches(*tag), PutOutcome::kConditionFailed);
  run.expect_missing(key);
}

void ranged_reads(CheckRun& run) {
  constexpr std::uint64_t kSize = 10'000;
  const Bytes bytes = random_bytes(kSize, 1);
  const std::string key = run.key("object");
  run.put(key, bytes, PutCondition::absent());
  struct Case {
    ByteRange range;
    std::uint64_t length;
  };
  for (const auto& [range, length] :
       {Case{{0, 1}, 1}, Case{{0, 100}, 100}, Case{{5'000, 1'000}, 1'000}, Case{{kSize - 1, 1}, 1},
        Case{{kSize - 10, 100}, 10}, Case{{kSize - 10}, 10}, Case{{kSize, 5}, 0},
        Case{{3, 0}, 0}}) {
    const auto what = fmt::format("get of {} bytes at {}", range.length, range.offset);
    const auto data = run.get(key, range);
    if (!data) {
      run.fail(what + " gave nothing");
      continue;
    }
    run.expect(std::ranges::equal(data->bytes, ByteSpan(bytes).subspan(range.offset, length)),
               what + " gave other bytes");
    run.expect(data->object_size_bytes == kSize, what + " gave a wrong object size");
  }
  const auto beyond = run.store().get(key, {kSize + 1, 1}, run.call());
  run.expect(beyond.is(ErrorKind::kInvalid), "get beyond the object's end is not `invalid`");
}

void list_after_put(CheckRun& run) {
  std::set<std::string> keys;
  for (const std::string_view name : {"a", "b", "c"}) {
    keys.insert(run.key(name));
    run.put(run.key(name), as_bytes(name), PutCondition::absent());
    run.expect_list(run.prefix(), {}, keys);
  }
}

void list_after_remove(CheckRun& run) {
  const auto keys = run.keys({"a", "b", "c"});
  for (const std::string& key : keys) run.put(key, as_bytes(key), PutCondition::absent());
  run.remove({keys[1]});
  run.expect_list(run.prefix(), {}, {keys[0], keys[2]});
  run.remove(keys);
  run.expect_list(run.prefix(), {}, {});
}

Status list_once(ObjectStore& store, const std::string& key, const CallOptions& call) {
  const auto listing = store.list(key, {}, call);
  if (!listing.is_ok()) return listing.status();
  return (*listing)->next_page(call).status();
}

Status remove_one(ObjectStore& store, const std::string& key, const CallOptions& call) {
  const auto removed = store.remove(std::span(&key, 1), call);
  if (!removed.is_ok() || removed->empty()) return removed.status();
  return removed->front();
}

/// Does with one object what the checks need to be allowed to do. Its error says nothing of the
/// store's promises; other failures are for the checks to judge.
Status check_access(ObjectStore& store, Runtime& runtime, const std::string& key,
                    const CallOptions& call) {
  const auto put = put_bytes(store, key, as_bytes("access"), PutCondition::absent(), call);
  const auto got = store.get(key, {}, call);
  const Status listed = list_once(store, key, call);
  const Status removed =
      remove_one(store, key, {.deadline = runtime.now() + kCleanUpTime, .stop = {}});
  const auto judge = [&](std::string_view operation, const Status& status) {
    if (!status.is(ErrorKind::kInvalid)) return Status::ok();
    return status.with_context(
        fmt::format("the probe could not {} '{}', so nothing is known of the object store: check "
                    "the permission for it",
                    operation, key));
  };
  BL_RETURN_IF_ERROR(judge("put", put.status()));
  BL_RETURN_IF_ERROR(judge("get", got.status()));
  BL_RETURN_IF_ERROR(judge("list", listed));
  return judge("remove", removed);
}

}  // namespace

std::vector<StoreCheck> probe_checks(const ProbeOptions& options) {
  return {{"create_twice", create_twice},
          {"racing_creates_small",
           [=](CheckRun& run) { race(run, kSmallBytes, options.racers, options.small_rounds); }},
          {"racing_creates_batch_size",
           [=](CheckRun& run) {
             race(run, options.batch_size_bytes, options.racers, options.batch_rounds);
           }},
          {"if_match_right", if_match_right},
          {"if_match_wrong", if_match_wrong},
          {"if_match_missing_key", if_match_missing_key},
          {"ranged_reads", ranged_reads},
          {"list_after_put", list_after_put},
          {"list_after_remove", list_after_remove}};
}

Status ProbeReport::verdict() const {
  for (const ProbeFinding& finding : findings) {
    if (finding.outcome != ProbeOutcome::kFailed) continue;
    return Status::invalid(
        fmt::format("the object store fails check '{}': {}; training on it could lose or repeat "
                    "data, so use another store or a newer version of this one",
                    finding.check, finding.reason));
  }
  return Status::ok();
}

Result<ProbeReport> probe(ObjectStore& store, Runtime& runtime, const ProbeOptions& options,
                          const CallOptions& call) {
  const std::string root = fmt::format("probe/{:016x}/", runtime.random());
  BL_RETURN_IF_ERROR(check_access(store, runtime, root + "access", call));
  ProbeReport report;
  for (const StoreCheck& check : probe_checks(options)) {
    CheckRun run(store, runtime, fmt::format("{}{}/", root, check.name), call);
    check.run(run);
    // Even if `call` is over: short, and nobody else knows these keys.
    const auto left = run.remove_all({.deadline = runtime.now() + kCleanUpTime, .stop = {}});
    report.left_behind.insert(report.left_behind.end(), left.begin(), left.end());
    if (!run.interruption().is_ok()) {
      return run.interruption().with_context(fmt::format("probe check '{}'", check.name));
    }
    ProbeFinding finding{.check = check.name, .outcome = ProbeOutcome::kPassed, .reason = {}};
    if (!run.failures().empty()) {
      finding.outcome = ProbeOutcome::kFailed;
      finding.reason = fmt::format("{}", fmt::join(run.failures(), "; "));
    } else if (run.skipped()) {
      finding.outcome = ProbeOutcome::kNotApplicable;
      finding.reason = *run.skipped();
    }
    report.findings.push_back(std::move(finding));
  }
  return report;
}

}  // namespace batchloom::objstore
