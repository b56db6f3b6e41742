// SPDX-License-Identifier: Apache-2.0
// Sample blocks: the payload of one source's samples of one step, as a loader hands it over.
//
// All token ids and tensors of a block lie in one buffer, in the width of the stream's batch
// objects. A batch object borrows them from there: between a loader and the store, payload is
// copied once, into the block, or read into it. What is to be known of all ids (whether each is
// below vocab, and their CRC) is found out then, some KiB at a time: later, each look would fetch
// them from memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "batchloom/base/raw_buffer.h"
#include "batchloom/base/status.h"
#include "batchloom/construction/record_cut.h"
#include "batchloom/construction/token_span.h"
#include "batchloom/model/sample_meta.h"
#include "batchloom/store/batch_builder.h"

namespace batchloom::construction {

/// One sample: what planning knows of it, and its payload, borrowed from its block.
struct BlockSample {
  model::SampleMeta meta;
  store::SampleContent content;
};

/// Immutable; thread-safe. Made by SampleBlockBuilder; held by pointer, since constructors that
/// try a step again share it.
class SampleBlock {
 public:
  SampleBlock(const SampleBlock&) = delete;
  SampleBlock& operator=(const SampleBlock&) = delete;

  model::Step step() const { return step_; }
  model::SourceId source() const { return source_; }
  store::TokenWidth token_width() const { return width_; }
  /// In the order in which they were added.
  const std::vector<BlockSample>& samples() const { return samples_; }
  /// What it takes in memory, for budgets: payload and rows.
  std::uint64_t size_bytes() const { return size_bytes_; }

 private:
  friend class SampleBlockBuilder;
  SampleBlock() = default;

  model::Step step_;
  model::SourceId source_;
  store::TokenWidth width_ = store::TokenWidth::k32;
  RawBuffer payload_;
  std::vector<BlockSample> samples_;
  std::uint64_t size_bytes_ = 0;
};

using BlockPtr = std::shared_ptr<const SampleBlock>;

struct SampleBlockOptions {
  model::Step step;
  model::SourceId source;
  std::uint32_t vocab = 0;  ///< Of the stream: all ids are below it.
  /// Of all samples, where it is known: the buffer is then made once, and so are their rows.
  std::uint64_t payload_bytes = 0;
  std::size_t samples = 0;
};

/// One thread at a time.
class SampleBlockBuilder {
 public:
  explicit SampleBlockBuilder(SampleBlockOptions options);

  /// Copies `part`. `invalid`, naming the sample, after which nothing was added: another source's;
  /// tokens, position or valid labels that are not those of `meta`; another number of tensors than
  /// of pictures; a token at or above vocab, named by its place in the record; tensors that
  /// store::check_content() refuses.
  Status add(model::SampleMeta meta, const PartContent& part);

  /// Adds a sample that is a whole record, of which all labels count, whose tokens lie somewhere in
  /// the width of the block: the caller puts them into tokens_of(), which holds anything before.
  /// `invalid` as add().
  Status add_whole(model::SampleMeta meta);

  /// Samples added so far.
  std::size_t samples() const { return block_->samples_.size(); }

  /// Of a sample that add_whole() added, by its number. Valid until the next one is added.
  std::span<std::byte> tokens_of(std::size_t sample);
  /// Looks at these tokens, once they are there: whether all are below vocab. Reckons their CRC,
  /// too. To be called for each sample that add_whole() added, before finish().
  bool check_whole(std::size_t sample);

  /// The block. Precondition: called once; no add() afterwards.
  BlockPtr finish();

 private:
  /// `tokens` came of it.
  Status check_meta(const model::SampleMeta& meta, const PartContent& part,
                    std::size_t tokens) const;
  Status check_ids(const PartContent& part) const;
  void copy_tokens(const TokenSpan& tokens);

  SampleBlockOptions options_;
  std::vector<std::size_t> places_;  ///< Of the samples' tokens in the payload.
  std::unique_ptr<SampleBlock> block_;
};

}  // namespace batchloom::construction
