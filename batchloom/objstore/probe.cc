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

/// One object written, read, listed and removed, without any condition: what fails here fails for
/// want of a permission, of space or of a connection, and says nothing about the store's behaviour.
Status try_plain_calls(ObjectStore& store, const std::string& prefix, const CallOptions& call) {
  const std::string key = prefix + "plain";
  const auto put = put_bytes(store, key, as_bytes("plain"), PutCondition::none(), call);
  if (!put.is_ok()) return put.status().with_context("writing " + key);
  const auto got = store.get(key, {}, call);
  if (!got.is_ok()) return got.status().with_context("reading " + key);
  const auto listing = store.list(prefix, "", call);
  if (!listing.is_ok()) return listing.status().with_context("listing " + prefix);
  const auto page = (*listing)->next_page(call);
  if (!page.is_ok()) return page.status().with_context("listing " + prefix);
  const auto removed = store.remove(std::span(&key, 1), call);
  if (!removed.is_ok()) return removed.status().with_context("removing " + key);
  const Status& gone = removed->front();
  return gone.is_ok() ? gone : gone.with_context("removing " + key);
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
  const Status plain = try_plain_calls(store, root, call);
  if (!plain.is_ok()) {
    return plain.with_context("the probe cannot begin, and says nothing about the store");
  }
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
