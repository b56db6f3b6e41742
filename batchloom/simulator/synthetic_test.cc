// SPDX-License-Identifier: Apache-2.0
#include "batchloom/simulator/synthetic.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <utility>

#include "batchloom/model/plan_check.h"

namespace batchloom::simulator {
namespace {

SyntheticConfig small() {
  SyntheticConfig config;
  config.seed = 7;
  config.ranks = 3;
  config.steps_per_object = 2;
  config.records_per_run = 2;
  config.record_tokens = 20;
  config.ring = true;
  return config;
}

std::unique_ptr<SyntheticBatches> make(const SyntheticConfig& config) {
  return SyntheticBatches::create(config).value();
}

TEST(Synthetic, PlansMayBeExecuted) {
  const auto batches = make(small());
  for (std::uint64_t seq = 0; seq < 20; ++seq) {
    const SyntheticBatches::Object object = batches->object(store::Seq(seq));
    for (const model::StepPlan& plan : object.plans) {
      const Status checked =
          model::check_plan(plan, {.capacity = std::nullopt, .equal_micro_batch_counts = true});
      EXPECT_TRUE(checked.is_ok()) << checked.to_string();
    }
  }
}

TEST(Synthetic, RecordsAreNumberedThroughWithoutAGap) {
  const auto batches = make(small());
  std::uint64_t next = 0;
  for (std::uint64_t seq = 0; seq < 5; ++seq) {
    for (const model::StepPlan& plan : batches->object(store::Seq(seq)).plans) {
      for (const model::PlanSample& sample : plan.samples) {
        EXPECT_EQ(sample.id.index.value, next++);
      }
    }
  }
}

TEST(Synthetic, AllKindsOfLabelsComeUp) {
  const auto batches = make(small());
  std::set<std::size_t> intervals;
  bool ends = false, goes_on = false;
  for (std::uint64_t seq = 0; seq < 30; ++seq) {
    for (const auto& samples : batches->object(store::Seq(seq)).samples) {
      for (const store::SampleContent& sample : samples) {
        intervals.insert(sample.labels ? sample.labels->size() : 99);
        (sample.next_token ? goes_on : ends) = true;
      }
    }
  }
  EXPECT_EQ(intervals, (std::set<std::size_t>{0, 2, 99}));
  EXPECT_TRUE(ends && goes_on);
}

TEST(Synthetic, EveryNumberOfTheConfigurationChangesWhatARankGets) {
  const auto hash = [](const SyntheticConfig& config) {
    return make(config)->expected_hash(store::Seq(1), 0, model::HdpRank(1));
  };
  std::set<std::uint64_t> hashes{hash(small())};
  EXPECT_EQ(hash(small()), *hashes.begin());
  const auto changed = [&](auto change) {
    SyntheticConfig config = small();
    change(config);
    hashes.insert(hash(config));
  };
  changed([](SyntheticConfig& config) { config.seed = 8; });
  changed([](SyntheticConfig& config) { config.ranks = 4; });
  changed([](SyntheticConfig& config) { config.steps_per_object = 3; });
  changed([](SyntheticConfig& config) { config.records_per_run = 3; });
  changed([](SyntheticConfig& config) { config.record_tokens = 21; });
  changed([](SyntheticConfig& config) { config.ring = false; });
  changed([](SyntheticConfig& config) { config.long_tokens = 30; });
  changed([](SyntheticConfig& config) { config.token_width = store::TokenWidth::k32; });
  changed([](SyntheticConfig& config) { config.source = model::SourceId(1); });
  changed([](SyntheticConfig& config) { config.pool_places = 100; });
  EXPECT_EQ(hashes.size(), 11u);
}

/// What a rank trains on, with at least one of everything; and a place for each thing to change.
struct SmallContent {
  std::uint64_t global_valid_labels = 7;
  std::vector<store::RunMicroBatch> micro_batches;
  std::vector<store::RunEvent> events = {{0, model::Phase::kForward}, {0, model::Phase::kBackward}};

  SmallContent() {
    store::RunMicroBatch& micro_batch = micro_batches.emplace_back();
    micro_batch.ring = {model::HdpRank(0), model::HdpRank(1)};
    store::RunPiece& piece = micro_batch.pieces.emplace_back();
    piece.hi = piece.sample_tokens = 4;
    piece.tokens = as_bytes("aabbccdd");
    piece.next_token = as_bytes("ee");
    piece.labels = {{0, 2}};
    piece.tensors.push_back(
        {.token = 1,
         .info = {.name = "pixels", .type = store::TensorType::kF16, .shape = {2, 3}},
         .bytes = as_bytes("123456123456")});
  }
  store::RunPiece& piece() { return micro_batches[0].pieces[0]; }
  store::RunPiece::Tensor& tensor() { return piece().tensors[0]; }
  std::uint64_t hash() const { return content_hash({global_valid_labels, micro_batches, events}); }
};

TEST(Synthetic, TheHashIsOfAllThatARankTrainsOn) {
  const std::function<void(SmallContent&)> changes[] = {
      [](SmallContent&) {},
      [](SmallContent& content) { ++content.global_valid_labels; },
      [](SmallContent& content) { content.micro_batches.emplace_back(); },
      [](SmallContent& content) { content.micro_batches[0].offload = model::kOffloadAll; },
      [](SmallContent& content) { content.micro_batches[0].ring.pop_back(); },
      [](SmallContent& content) { ++content.piece().sample.index; },
      [](SmallContent& content) { ++content.piece().lo; },
      [](SmallContent& content) { ++content.piece().first_position; },
      [](SmallContent& content) { content.piece().tokens = as_bytes("aabbccdc"); },
      [](SmallContent& content) { content.piece().has_next_token = true; },
      [](SmallContent& content) { content.piece().next_token = as_bytes("ff"); },
      [](SmallContent& content) { content.piece().labels.push_back({3, 4}); },
      [](SmallContent& content) { content.piece().labels.clear(); },
      [](SmallContent& content) { ++content.tensor().token; },
      [](SmallContent& content) { content.tensor().info.name = "pixel"; },
      [](SmallContent& content) { content.tensor().info.type = store::TensorType::kBf16; },
      [](SmallContent& content) { content.tensor().info.shape = {3, 2}; },
      [](SmallContent& content) { content.tensor().info.shape = {6}; },
      [](SmallContent& content) { content.tensor().bytes = as_bytes("123456123457"); },
      [](SmallContent& content) { content.piece().tensors.clear(); },
      [](SmallContent& content) { std::swap(content.events[0], content.events[1]); },
      [](SmallContent& content) { content.events.pop_back(); }};
  std::set<std::uint64_t> hashes;
  for (const auto& change : changes) {
    SmallContent content;
    change(content);
    EXPECT_TRUE(hashes.insert(content.hash()).second) << "change " << hashes.size();
  }
}

TEST(Synthetic, NumbersThatMakeNoBatchAreRefused) {
  for (auto member : {&SyntheticConfig::ranks, &SyntheticConfig::steps_per_object,
                      &SyntheticConfig::records_per_run, &SyntheticConfig::record_tokens,
                      &SyntheticConfig::pool_places}) {
    SyntheticConfig config = small();
    config.*member = 0;
    EXPECT_TRUE(SyntheticBatches::create(config).is(ErrorKind::kInvalid));
    if (member == &SyntheticConfig::pool_places) continue;
    config.*member = UINT32_MAX;
    EXPECT_TRUE(SyntheticBatches::create(config).is(ErrorKind::kInvalid));
  }
  SyntheticConfig config = small();
  config.long_tokens = 10;
  EXPECT_TRUE(SyntheticBatches::create(config).is(ErrorKind::kInvalid)) << "not a multiple of 3";
}

TEST(Synthetic, TheSameSamplesCanBeLaidOutForAnotherNumberOfRanks) {
  SyntheticConfig config = small();
  config.long_tokens = 12;
  std::vector<SyntheticBatches::Object> objects;
  std::vector<std::unique_ptr<SyntheticBatches>> batches;
  for (const std::uint32_t ranks : {1U, 2U, 3U}) {
    config.ranks = ranks;
    config.records_per_run = 6 / ranks;
    batches.push_back(make(config));
    objects.push_back(batches.back()->object(store::Seq(4)));
  }
  for (const SyntheticBatches::Object& object : objects) {
    for (std::size_t step = 0; step < object.plans.size(); ++step) {
      EXPECT_EQ(object.plans[step].samples, objects[0].plans[step].samples);
      for (std::size_t i = 0; i < object.samples[step].size(); ++i) {
        const store::SampleContent& sample = object.samples[step][i];
        const store::SampleContent& first = objects[0].samples[step][i];
        EXPECT_EQ(as_text(sample.tokens), as_text(first.tokens));
        EXPECT_EQ(sample.next_token, first.next_token);
        EXPECT_EQ(sample.labels, first.labels);
      }
    }
  }
}

}  // namespace
}  // namespace batchloom::simulator
