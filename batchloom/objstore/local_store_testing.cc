// SPDX-License-Identifier: Apache-2.0
#include "batchloom/objstore/local_store_testing.h"

#include <stdlib.h>

#include "batchloom/base/check.h"

namespace batchloom::objstore {

Status ManualRuntime::sleep_until(const CallOptions& call) {
  if (call.stop.stop_requested()) return Status::cancelled("a stop was requested");
  now_ = std::max(now_, call.deadline);
  return Status::ok();
}

std::unique_ptr<Task> ManualRuntime::spawn(std::string, std::function<void(std::stop_token)>) {
  BL_CHECK(false, "ManualRuntime spawns nothing");
  return nullptr;
}

std::unique_ptr<Event> ManualRuntime::make_event() {
  BL_CHECK(false, "ManualRuntime waits for nothing");
  return nullptr;
}

std::uint64_t ManualRuntime::random() {
  return 4;
}

Status ManualRuntime::check(const CallOptions& call) {
  if (call.stop.stop_requested()) return Status::cancelled("a stop was requested");
  if (call.deadline <= now_) return Status::unavailable("the deadline passed");
  return Status::ok();
}

ScratchFolder::ScratchFolder()
    : path_((std::filesystem::temp_directory_path() / "batchloom-XXXXXX").string()) {
  BL_CHECK(mkdtemp(path_.data()) != nullptr, "cannot make " + path_);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Result<PutReply> put_text(ObjectStore& store, std::string_view key, std::string_view text,
                          const PutCondition& condition) {
  return put_bytes(store, key, batchloom::as_bytes(text), condition, {});
}

Result<std::optional<std::string>> get_text(ObjectStore& store, std::string_view key) {
  BL_ASSIGN_OR_RETURN(const auto data, store.get(key, {}, {}));
  if (!data) return std::optional<std::string>();
  return std::optional(std::string(as_text(data->bytes)));
}

bool says(const Status& status, std::string_view text) {
  return status.message().find(text) != std::string_view::npos;
}

PutOutcome outcome(const Result<PutReply>& reply) {
  EXPECT_TRUE(reply.is_ok()) << reply.status().to_string();
  return reply.is_ok() ? reply->outcome : PutOutcome::kUnknown;
}

std::string temp_file_name(const testing::TestParamInfo<bool>& unnamed) {
  return unnamed.param ? "Unnamed" : "Named";
}

Result<std::map<std::string, std::uint64_t>> list_all(ObjectStore& store, const ListQuery& query) {
  BL_ASSIGN_OR_RETURN(const auto listing, store.list(query.prefix, query.start_after, {}));
  std::map<std::string, std::uint64_t> found;
  for (;;) {
    BL_ASSIGN_OR_RETURN(const auto page, listing->next_page({}));
    if (page.empty()) return found;
    for (const ListedObject& object : page) {
      if (!found.emplace(object.key, object.size_bytes).second) {
        return Status::internal("listed twice: " + object.key);
      }
    }
  }
}

Status remove_key(ObjectStore& store, const std::string& key, const CallOptions& call) {
  BL_ASSIGN_OR_RETURN(const auto replies, store.remove(std::span(&key, 1), call));
  return replies.at(0);
}

}  // namespace batchloom::objstore
