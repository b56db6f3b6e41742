// SPDX-License-Identifier: Apache-2.0
// What the tests of verify_stream() share: a stream in memory to grow, damage and forge.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "batchloom/base/real_runtime.h"
#include "batchloom/objstore/memory_store.h"
#include "batchloom/store/head_edit.h"
#include "batchloom/store/producer_session.h"
#include "batchloom/store/scripted_store_testing.h"
#include "batchloom/store/segment_reader.h"
#include "batchloom/store/store_testing.h"
#include "batchloom/store/trim.h"
#include "batchloom/store/verify.h"

namespace batchloom::store {

// So small that 20 batches make three levels of segments, and that states lie beside.
inline constexpr Limits kTinyVerifyLimits{
    .tail_entries = 2, .inline_state_max_bytes = 8, .arity = 2, .slots_kept = 4};

class VerifyTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(init_stream(deps_, "verify_test", {}).is_ok());
    stream_ = open_stream({});
  }

  std::unique_ptr<Stream> open_stream(const Safeguards& safeguards) {
    auto stream = Stream::open(deps_, {.limits = kTinyVerifyLimits, .safeguards = safeguards}, {});
    EXPECT_TRUE(stream.is_ok()) << stream.status().to_string();
    return std::move(stream).value();
  }

  std::unique_ptr<ProducerSession> open_session(const Stream& stream, const std::string& name) {
    auto session = ProducerSession::open(stream, name, {});
    EXPECT_TRUE(session.is_ok()) << session.status().to_string();
    return std::move(session).value();
  }
  std::unique_ptr<ProducerSession> open_session(const std::string& name) {
    return open_session(*stream_, name);
  }

  PendingBatch upload(ProducerSession& session, std::uint64_t seq, std::uint32_t steps = 1) {
    const Bytes body = to_bytes(fmt::format("batch {} of {}", seq, session.producer()));
    const ByteSpan part = body;
    auto batch = session.upload({.seq = Seq(seq), .steps = steps, .ranks = 2, .run_table = {}},
                                std::span(&part, 1), {});
    EXPECT_TRUE(batch.is_ok()) << batch.status().to_string();
    batch->state_after = to_bytes(fmt::format("the state after batch {}", seq));
    return *batch;
  }

  // One commit for each of [first, end).
  void append(ProducerSession& session, std::uint64_t first, std::uint64_t end,
              std::uint32_t steps = 1) {
    for (std::uint64_t seq = first; seq < end; ++seq) {
      const PendingBatch batch = upload(session, seq, steps);
      const auto receipt = session.commit(std::span(&batch, 1), {});
      ASSERT_TRUE(receipt.is_ok()) << receipt.status().to_string();
    }
  }

  // From `step` on, by 300 bytes of keys.
  void set_membership(ProducerSession& session, std::uint64_t step, std::uint64_t digest) {
    const auto set = session.set_membership(
        {.from_step = Step(step), .digest = {.high = 0, .low = digest}, .keys = Bytes(300)}, {});
    ASSERT_TRUE(set.is_ok()) << set.status().to_string();
  }

  // 20 entries of two producers, one of them fenced midway and the other finished: 23 steps. The
  // newest slot is 25: genesis, 3 fences, 20 commits, 1 finish.
  void grow() {
    append(*open_session("a"), 0, 8);
    const auto b = open_session("b");
    append(*b, 0, 3, 2);
    append(*open_session("a"), 8, 17);
    ASSERT_TRUE(b->finish({}).is_ok());
  }

  VerifyReport verify() {
    auto report = verify_stream(*stream_, VerifyDepth::kManifest, {});
    EXPECT_TRUE(report.is_ok()) << report.status().to_string();
    EXPECT_THAT(report->problems,
                testing::Each(testing::MatchesRegex("[^ ]+: (at byte [0-9]+: |missing, ).+")));
    return std::move(report).value();
  }

  std::vector<std::string> keys(std::string_view prefix) {
    std::vector<std::string> keys;
    const auto listing = bucket_.list(prefix, "", {});
    EXPECT_TRUE(listing.is_ok());
    for (;;) {
      const auto page = (*listing)->next_page({});
      EXPECT_TRUE(page.is_ok());
      if (page->empty()) break;
      for (const auto& object : *page) keys.push_back(object.key);
    }
    std::ranges::sort(keys);
    return keys;
  }
  Bytes get(const std::string& key) { return (**bucket_.get(key, {}, {})).bytes; }
  void put(const std::string& key, const Bytes& bytes) {
    ASSERT_TRUE(
        objstore::put_bytes(bucket_, key, bytes, objstore::PutCondition::none(), {}).is_ok());
  }
  void remove(const std::string& key) {
    ASSERT_TRUE(bucket_.remove(std::span(&key, 1), {}).is_ok());
  }
  StoredHead head(std::uint64_t slot) {
    return *decode_head(stream_->uuid(), Slot(slot), get(manifest_key(Slot(slot))));
  }
  // Writes a head that has a right frame and breaks a rule.
  void forge(const Head& head) {
    put(manifest_key(head.slot), encode_head(stream_->uuid(), head).bytes);
  }

  Head newest_head() { return ManifestReader(*stream_).latest({}).value()->head; }

  void edit(const HeadEdit& edit) {
    ManifestReader reader(*stream_);
    ASSERT_TRUE(commit_edit(*stream_, reader, edit, {}).is_ok());
  }
  void trim_to(Step step) {
    edit([&](const Head& head) { return std::optional(propose_trim_intent(head, step)); });
    edit([&](const Head& head) { return std::optional(complete_trim(head, step, {})); });
  }
  // Removes every batch and every segment that holds trimmed steps alone.
  void remove_trimmed() {
    const Head head = newest_head();
    SegmentReader segments(*stream_);
    std::set<std::string> needed;
    for (Step step = head.first_step; step < head.next_step; ++step) {
      needed.insert(data_key(segments.find(head, step, {}).value().object()));
    }
    const Status walked = segments.for_each_ref(head, {}, [&](const SegmentRef& ref) {
      needed.insert(segment_key(ref.name()));
      return Status::ok();
    });
    ASSERT_TRUE(walked.is_ok());
    for (const std::string_view prefix : {kDataPrefix, kSegmentPrefix}) {
      for (const std::string& key : keys(prefix)) {
        if (!needed.contains(key) && !key.ends_with(".state")) remove(key);
      }
    }
  }

  std::unique_ptr<Runtime> runtime_ = make_real_runtime();
  objstore::MemoryStore bucket_{*runtime_, {.page_size = 3}};
  ScriptedStore objects_{bucket_};
  Counters counters_;
  StreamDeps deps_{*runtime_, objects_, counters_};
  std::unique_ptr<Stream> stream_;
};

}  // namespace batchloom::store
