// SPDX-License-Identifier: Apache-2.0
#include "batchloom/objstore/conformance_listing_testing.h"

#include <fmt/format.h>

#include <set>

namespace batchloom::objstore {
namespace {

void replace_all(CheckRun& run, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) run.put(key, as_bytes("other"), PutCondition::none());
}

std::vector<std::string> put_many(CheckRun& run, std::string_view name, std::size_t count) {
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < count; ++i) {
    keys.push_back(run.key(fmt::format("{}-{:05}", name, i)));
    run.put(keys.back(), as_bytes("x"), PutCondition::none());
  }
  return keys;
}

}  // namespace

void list_prefixes(CheckRun& run) {
  const auto keys = run.keys({"a-b", "a.b", "a/b", "a/c/d", "a0", "ab", "b"});
  for (const std::string& key : keys) run.put(key, as_bytes(key), PutCondition::absent());
  const std::string& root = run.prefix();
  run.expect_list(root, {}, {keys.begin(), keys.end()});
  run.expect_list(root + "a", {}, {keys.begin(), keys.end() - 1});
  run.expect_list(root + "a/", {}, {keys[2], keys[3]});
  run.expect_list(root + "a/c", {}, {keys[3]});
  run.expect_list(root + "a-", {}, {keys[0]});
  run.expect_list(root + "a.", {}, {keys[1]});
  run.expect_list(root + "a/b", {}, {keys[2]});
  run.expect_list(root + "c", {}, {});
  run.expect_list(root + "a/b/", {}, {});
  const auto sizes = run.list(root + "b");
  run.expect(sizes.contains(keys[6]) && sizes.at(keys[6]) == keys[6].size(),
             "a listing shows a wrong size");
}

void list_start_after(CheckRun& run) {
  const auto keys = run.keys({"a-b", "a.b", "a/b", "a/c/d", "a0", "ab", "b"});
  for (const std::string& key : keys) run.put(key, as_bytes(key), PutCondition::absent());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    run.expect_list(run.prefix(), keys[i],
                    {keys.begin() + static_cast<std::ptrdiff_t>(i) + 1, keys.end()});
  }
  run.expect_list(run.prefix(), run.prefix() + "a/", {keys.begin() + 2, keys.end()});
  run.expect_list(run.prefix() + "a/", run.prefix() + "a/bb", {keys[3]});
  run.expect_list(run.prefix() + "a", run.prefix() + "b", {});
}

void list_pages(ConformanceFixture& fixture) {
  CheckRun& run = fixture.run;
  const auto keys = put_many(run, "key", 2 * fixture.factory.page_keys + 1);
  run.expect_list(run.prefix(), {}, {keys.begin(), keys.end()});
  run.remove(keys);
  run.expect_list(run.prefix(), {}, {});
}

void list_while_changing(ConformanceFixture& fixture) {
  CheckRun& run = fixture.run;
  const std::size_t page = fixture.factory.page_keys;
  const auto stay = put_many(run, "stay", page + 1);
  const auto replaced = put_many(run, "replaced", page + 1);
  const auto go = put_many(run, "go", page / 2 + 1);
  auto listing = run.store().list(run.prefix(), {}, run.call());
  if (!listing.is_ok()) return run.note_error(listing.status());
  std::set<std::string> shown;
  for (std::size_t pages = 0;; ++pages) {
    const auto got = (*listing)->next_page(run.call());
    if (!got.is_ok()) return run.note_error(got.status());
    if (got->empty()) break;
    for (const ListedObject& object : *got) {
      run.expect(shown.insert(object.key).second, fmt::format("'{}' is shown twice", object.key));
    }
    replace_all(run, replaced);  // Before every further page.
    if (pages > 0) continue;
    run.remove(go);
    put_many(run, "new", page / 2 + 1);
  }
  for (const auto& keys : {stay, replaced}) {
    for (const std::string& key : keys) {
      run.expect(shown.contains(key), fmt::format("'{}' was there all along and not shown", key));
    }
  }
}

}  // namespace batchloom::objstore
