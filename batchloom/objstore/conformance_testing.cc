// SPDX-License-Identifier: Apache-2.0
#include "batchloom/objstore/conformance_testing.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "batchloom/base/real_runtime.h"
#include "batchloom/objstore/conformance_listing_testing.h"
#include "batchloom/objstore/probe.h"
#include "batchloom/objstore/process_race_testing.h"

namespace batchloom::objstore {
namespace {

constexpr std::size_t kSmallBytes = 4096;
constexpr std::size_t kLargeBytes = std::size_t{9} << 20;

void unconditional_replace(CheckRun& run) {
  const std::string key = run.key("object");
  run.put(key, as_bytes("a long first content"), PutCondition::none());
  run.put(key, as_bytes("second"), PutCondition::none());
  run.expect_content(key, as_bytes("second"));
}

void several_parts(CheckRun& run) {
  const std::string key = run.key("object");
  const Bytes whole = random_bytes(100'000, 2);
  const ByteSpan all(whole);
  const std::vector<ByteSpan> parts = {all.first(1), all.subspan(1, 0), all.subspan(1, 60'000),
                                       all.subspan(60'001)};
  const auto reply = run.store().put(key, parts, PutCondition::absent(), run.call());
  run.expect(reply.is_ok() && reply->outcome == PutOutcome::kApplied, "put of parts not applied");
  run.expect_content(key, whole);
}

void empty_object(CheckRun& run) {
  const std::string key = run.key("object");
  run.put(key, {}, PutCondition::absent());
  run.expect_content(key, {});
  run.put(key, as_bytes("x"), PutCondition::absent(), PutOutcome::kConditionFailed);
  const auto none = run.store().put(run.key("no-parts"), {}, PutCondition::absent(), run.call());
  run.expect(none.is_ok() && none->outcome == PutOutcome::kApplied, "put of no parts not applied");
  run.expect_content(run.key("no-parts"), {});
}

void head_gives_size(CheckRun& run) {
  const std::string key = run.key("object");
  run.put(key, random_bytes(12'345, 3), PutCondition::absent());
  const auto info = run.store().head(key, run.call());
  run.expect(info.is_ok() && *info && (*info)->size_bytes == 12'345,
             "head gave no or a wrong size");
}

/// What memory the caller offers makes no difference.
void storage_is_only_memory(CheckRun& run) {
  const std::string key = run.key("object");
  const Bytes content = random_bytes(12'345, 5);
  run.put(key, content, PutCondition::absent());
  for (const ByteRange range : {ByteRange(), ByteRange{100, 2'000}, ByteRange{12'000, 9'999}}) {
    const auto wanted = run.get(key, range);
    for (const std::size_t size : std::initializer_list<std::size_t>{0, 1, 2'000, 20'000}) {
      const auto got = run.store().get_into(Bytes(size, std::byte{7}), key, range, run.call());
      run.expect(got.is_ok() && *got && wanted && (*got)->bytes == wanted->bytes &&
                     (*got)->object_size_bytes == content.size() && (*got)->etag == wanted->etag,
                 fmt::format("get_into of {} bytes of storage gave something else", size));
    }
  }
  const auto missing = run.store().get_into(Bytes(10), run.key("missing"), {}, run.call());
  run.expect(missing.is_ok() && !*missing, "get_into of a missing key");
}

void missing_keys_are_values(CheckRun& run) {
  const std::string key = run.key("missing");
  const auto whole = run.store().get(key, {}, run.call());
  run.expect(whole.is_ok() && !*whole, "get of a missing key");
  const auto part = run.store().get(key, {5, 5}, run.call());
  run.expect(part.is_ok() && !*part, "ranged get of a missing key");
  const auto info = run.store().head(key, run.call());
  run.expect(info.is_ok() && !*info, "head of a missing key");
  run.expect_list(run.prefix(), {}, {});
}

void remove_missing_keys(CheckRun& run) {
  const auto keys = run.keys({"a", "missing", "b"});
  run.put(keys[0], as_bytes("a"), PutCondition::none());
  run.put(keys[2], as_bytes("b"), PutCondition::none());
  run.remove(keys);
  run.remove(keys);
  run.remove({});
  run.expect_list(run.prefix(), {}, {});
  run.put(keys[0], as_bytes("again"), PutCondition::absent());
  run.expect_content(keys[0], as_bytes("again"));
}

void bad_keys_are_refused(CheckRun& run) {
  ObjectStore& store = run.store();
  const CallOptions& call = run.call();
  const std::string good = run.key("good");
  run.put(good, as_bytes("x"), PutCondition::none());
  const std::string long_key(1001, 'k');
  for (const std::string& key : std::vector<std::string>{
           "", "/a", "a/", "a//b", ".a", "a/.b", "..", "a/../b", "a b", "a\\b", "a%2Fb", "a?b",
           "a\nb", std::string("a\0b", 3), "\xc3\xa4", long_key}) {
    const auto refused = [&](const auto& result, std::string_view call_name) {
      run.expect(result.is(ErrorKind::kInvalid),
                 fmt::format("{} of bad key '{}' is not `invalid`", call_name, key.substr(0, 20)));
    };
    refused(store.get(key, {}, call), "get");
    refused(store.head(key, call), "head");
    for (const auto& condition :
         {PutCondition::none(), PutCondition::absent(), PutCondition::matches({"tag"})}) {
      refused(put_bytes(store, key, as_bytes("x"), condition, call), "put");
    }
    const std::vector<std::string> keys = {good, key};
    refused(store.remove(keys, call), "remove");
  }
  run.expect_content(good, as_bytes("x"));
}

/// Every call made with `call` must end with `kind` and without effect.
void expect_all_refused(CheckRun& run, const CallOptions& call, ErrorKind kind) {
  ObjectStore& store = run.store();
  const std::string there = run.key("there");
  const std::string absent = run.key("absent");
  run.put(there, as_bytes("x"), PutCondition::none());
  const auto refused = [&](const auto& result, std::string_view name) {
    run.expect(result.is(kind), fmt::format("{} does not end with {}", name, to_string(kind)));
  };
  refused(store.get(there, {}, call), "get");
  refused(store.head(there, call), "head");
  refused(put_bytes(store, absent, as_bytes("x"), PutCondition::none(), call), "put");
  refused(put_bytes(store, absent, as_bytes("x"), PutCondition::absent(), call), "create");
  const std::vector<std::string> keys = {there};
  refused(store.remove(keys, call), "remove");
  auto listing = store.list(run.prefix(), {}, call);
  if (listing.is_ok()) {
    refused((*listing)->next_page(call), "list");
  } else {
    refused(listing, "list");
  }
  run.expect_content(there, as_bytes("x"));
  run.expect_missing(absent);
}

void stop_is_honoured(CheckRun& run) {
  std::stop_source source;
  source.request_stop();
  expect_all_refused(run, {.deadline = kNever, .stop = source.get_token()}, ErrorKind::kCancelled);
}

void deadline_is_honoured(CheckRun& run) {
  const Time passed = run.runtime().now() - std::chrono::seconds(1);
  expect_all_refused(run, {.deadline = passed, .stop = {}}, ErrorKind::kUnavailable);
}

void race_of_processes(ConformanceFixture& fixture, std::size_t size_bytes) {
  const RaceBodies bodies(ProbeOptions{}.racers, size_bytes);
  for (int round = 0; round < 2; ++round) {
    race_processes(fixture, fixture.run.key(fmt::format("race-{}", round)), bodies);
  }
}

ConformanceCheck plain(std::string name, std::function<void(CheckRun&)> run) {
  return {std::move(name), [run = std::move(run)](ConformanceFixture& f) { run(f.run); }};
}

}  // namespace

std::vector<ConformanceCheck> conformance_checks(const BackendFactory& factory) {
  std::vector<ConformanceCheck> checks;
  for (StoreCheck& check : probe_checks({.batch_size_bytes = kLargeBytes})) {
    checks.push_back(plain(std::move(check.name), std::move(check.run)));
  }
  checks.insert(checks.end(), {plain("unconditional_replace", unconditional_replace),
                               plain("several_parts", several_parts),
                               plain("empty_object", empty_object),
                               plain("head_gives_size", head_gives_size),
                               plain("storage_is_only_memory", storage_is_only_memory),
                               plain("missing_keys_are_values", missing_keys_are_values),
                               plain("remove_missing_keys", remove_missing_keys),
                               plain("list_prefixes", list_prefixes),
                               plain("list_start_after", list_start_after),
                               {"list_pages", list_pages},
                               {"list_while_changing", list_while_changing},
                               plain("bad_keys_are_refused", bad_keys_are_refused),
                               plain("stop_is_honoured", stop_is_honoured),
                               plain("deadline_is_honoured", deadline_is_honoured)});
  if (factory.shared_by_processes) {
    checks.push_back({"racing_processes_small",
                      [](ConformanceFixture& f) { race_of_processes(f, kSmallBytes); }});
    checks.push_back({"racing_processes_batch_size",
                      [](ConformanceFixture& f) { race_of_processes(f, kLargeBytes); }});
  }
  return checks;
}

std::optional<std::string> run_conformance_check(const BackendFactory& factory,
                                                 const ConformanceCheck& check) {
  const auto runtime = make_real_runtime();
  const auto backend = factory.make(*runtime);
  if (backend == nullptr) return "the backend cannot be made";
  CheckRun run(backend->store(), *runtime, "conformance/" + check.name + "/", {});
  ConformanceFixture fixture{.run = run, .backend = *backend, .factory = factory};
  check.run(fixture);
  if (!run.interruption().is_ok()) run.fail(run.interruption().to_string());
  if (run.failures().empty()) return std::nullopt;
  return fmt::format("{}", fmt::join(run.failures(), "\n"));
}

std::vector<ConformanceCase> conformance_cases(const BackendFactory& factory) {
  std::vector<ConformanceCase> cases;
  for (ConformanceCheck& check : conformance_checks(factory)) {
    cases.push_back({.factory = factory, .check = std::move(check)});
  }
  return cases;
}

std::string conformance_name(const testing::TestParamInfo<ConformanceCase>& info) {
  return info.param.check.name;
}

void PrintTo(const ConformanceCase& value, std::ostream* out) {
  *out << value.check.name;
}

// Instantiated by each backend's test. A test program may link this file for other reasons.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StoreConformance);

TEST_P(StoreConformance, Holds) {
  const auto wrong = run_conformance_check(GetParam().factory, GetParam().check);
  EXPECT_FALSE(wrong) << *wrong;
}

}  // namespace batchloom::objstore
