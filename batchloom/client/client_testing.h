// SPDX-License-Identifier: Apache-2.0
// Steps for the tests of the client: samples with known content, plans that lay them out for any
// number of ranks, a stream that holds them, and the oracle that says what each rank must get.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "batchloom/client/consumer.h"
#include "batchloom/store/batch_builder.h"
#include "batchloom/store/producer_session.h"
#include "batchloom/store/stream.h"

namespace batchloom::client {

/// A sample's payload, owned; a function of a seed and of the plan's row.
struct SampleData {
  Bytes tokens;
  std::optional<std::uint32_t> next_token;
  std::optional<std::vector<store::LabelInterval>> labels;
  struct Tensor {
    std::uint32_t token = 0;
    store::TensorInfo info;
    Bytes bytes;
  };
  std::vector<Tensor> tensors;

  store::SampleContent content() const;  ///< Borrows all of it.
  bool has_label(const model::PlanSample& sample, std::uint32_t label) const;
};

/// One step: what a producer stores, and what consumers must get.
struct TestStep {
  model::StepPlan plan;
  store::TokenWidth width = store::TokenWidth::k32;
  std::vector<SampleData> samples;  ///< By plan.samples.
};

struct TestStepShape {
  std::uint64_t seed = 0;
  std::uint32_t ranks = 2;
  std::uint32_t samples = 5;
  std::uint32_t max_tokens = 40;  ///< Of a sample.
  store::TokenWidth width = store::TokenWidth::k32;
};

/// Samples with packs, rings, fillers, masks and tensors among them; a function of `shape`.
TestStep make_step(const TestStepShape& shape);

/// make_step() with the first seed from the given one on that leaves each sample whole on one rank,
/// or the first that gives rank 0 a part of one that lies on several.
TestStep make_whole_step(TestStepShape shape);
TestStep make_ring_step(TestStepShape shape);

/// A plan that check_plan() accepts, of these samples for so many ranks; a function of the seed.
/// Samples are cut anywhere, and their chunks may lie on any member of their ring.
model::StepPlan random_layout(const std::vector<model::PlanSample>& samples, std::uint32_t ranks,
                              std::uint64_t seed);

/// Whether `batches`, one per rank, hold `step` as `plan` lays it out: every piece where it should
/// be, with the tokens, look-ahead, positions, labels and tensors of its sample, and each token
/// once.
testing::AssertionResult hold_step(std::span<const StepPtr> batches, const TestStep& step,
                                   const model::StepPlan& plan);

/// A new stream and a producer that fills it. One thread at a time.
class TestProducer {
 public:
  /// `stream` outlives it.
  explicit TestProducer(const store::Stream& stream, const std::string& name = "p");

  /// Stores and commits one object with these steps, all of the same width.
  store::CommitReceipt append(std::span<const TestStep> pack);
  /// Objects of `pack` steps each, of small steps whose seeds are their numbers.
  void append_small(std::uint32_t objects, std::uint32_t pack = 1, std::uint32_t ranks = 2);

  /// All steps so far; a step's number is its place.
  const std::vector<TestStep>& steps() const { return steps_; }
  /// Of all objects so far, as their builder counts it.
  std::uint64_t payload_bytes() const { return payload_bytes_; }

 private:
  const store::Stream& stream_;
  std::unique_ptr<store::ProducerSession> session_;
  store::Seq next_seq_;
  std::vector<TestStep> steps_;
  std::uint64_t payload_bytes_ = 0;
};

/// A small step of the seed: what TestProducer::append_small() stores.
TestStep small_step(std::uint64_t seed, std::uint32_t ranks = 2);

}  // namespace batchloom::client
