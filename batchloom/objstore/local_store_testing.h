// SPDX-License-Identifier: Apache-2.0
// What the tests of LocalStore share.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "batchloom/base/runtime.h"
#include "batchloom/objstore/object_store.h"

namespace batchloom::objstore {

/// A runtime of one thread whose time passes only in sleep_until. Spawns nothing.
class ManualRuntime final : public Runtime {
 public:
  Time now() override { return now_; }
  Status sleep_until(const CallOptions& call) override;
  std::unique_ptr<Task> spawn(std::string name, std::function<void(std::stop_token)> body) override;
  std::unique_ptr<Event> make_event() override;
  std::uint64_t random() override;
  Status check(const CallOptions& call) override;

 private:
  Time now_{};
};

/// A new folder on the real disk; removed with all it holds by the destructor.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// put() of a text, without deadline.
Result<PutReply> put_text(ObjectStore& store, std::string_view key, std::string_view text,
                          const PutCondition& condition = PutCondition::none());

/// The object as a text, without deadline.
Result<std::optional<std::string>> get_text(ObjectStore& store, std::string_view key);

struct ListQuery {
  std::string prefix = {};
  std::string start_after = {};
};

/// Whether the message of `status` contains `text`.
bool says(const Status& status, std::string_view text);

/// What a put() came to; a failed one fails the test.
PutOutcome outcome(const Result<PutReply>& reply);

/// Names the cases of tests that run with unnamed temporary files (true) and with named ones.
std::string temp_file_name(const testing::TestParamInfo<bool>& unnamed);

/// All pages of a listing: sizes by key. `internal` where a key is shown twice.
Result<std::map<std::string, std::uint64_t>> list_all(ObjectStore& store,
                                                      const ListQuery& query = {});

/// Removes one key: ok, or why not.
Status remove_key(ObjectStore& store, const std::string& key, const CallOptions& call = {});

}  // namespace batchloom::objstore
