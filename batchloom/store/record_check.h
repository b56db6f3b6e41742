// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "batchloom/store/batch_index.h"
#include "batchloom/store/head.h"

namespace batchloom::store {

/// Conservation of records: follows the samples of each producer through a stream, in step order,
/// and tells where one is drawn that should not be. In an epoch of a source
///
///  1. each record is drawn once;
///  2. its parts follow each other, from part 0 on, with no other record of the source between, and
///     each begins at the position where the one before ended.
///
/// Plans have their samples by id, so that within a step nobody knows which record of a source was
/// drawn last: any of them may go on in the source's next step, but only one.
///
/// Where other keys begin to decide membership, all of that begins anew: sources may be others
/// there, or go on where they were.
///
/// A source is known by name and digest, so that producers with other lists of sources, and other
/// numbers for them, do not mix. What no stream shows: records that were never drawn, and parts
/// left out at the end of a record. Memory: about a bit for each record up to the highest one
/// drawn, in pages of 512 bytes. One thread at a time.
class RecordCheck {
 public:
  /// `from_start`: the first entry that follows is the stream's first. Otherwise the records that
  /// come first may have begun before. `changes`: the steps from which on the keys that decide
  /// membership are others than before, ascending.
  explicit RecordCheck(bool from_start, std::vector<Step> changes = {})
      : from_start_(from_start), changes_(std::move(changes)) {}

  /// Takes the steps of the next entry; the first thing that is wrong with them, if anything.
  std::optional<std::string> add(const Entry& entry, const BatchIndex& index);

  /// Some entries could not be read: any record may have gone on there.
  void skip();

  std::uint64_t samples() const { return samples_; }
  std::uint64_t tokens() const { return tokens_; }

 private:
  /// Records, by their numbers.
  class RecordSet {
   public:
    /// False where it holds the record already.
    bool insert(model::RecordIndex record);

   private:
    static constexpr std::uint64_t kPageWords = 64;
    std::map<std::uint64_t, std::array<std::uint64_t, kPageWords>> pages_;
  };

  /// A record that may go on: where its next part, if it has one, begins.
  struct OpenRecord {
    model::PartIndex next_part;
    std::uint64_t next_position = 0;
  };
  using OpenRecords = std::map<std::pair<model::Epoch, model::RecordIndex>, OpenRecord>;

  struct Source {
    std::map<model::Epoch, RecordSet> drawn;
    OpenRecords before;      ///< Those of the last step that had any of the source.
    OpenRecords now;         ///< Those of this step.
    bool went_on = false;    ///< A record of `before` has gone on in this step.
    bool may_go_on = false;  ///< One sample of the next step may be any part of its record.

    void end_step();
  };

  struct Producer {
    Term term;
    Seq next_seq;
    bool may_go_on = false;
    std::map<std::pair<std::string, std::uint64_t>, Source> sources;  ///< By name and digest.
  };

  bool reaches_change(Step step);
  Producer& producer_of(const Entry& entry);
  static Source& source_of(Producer& producer, const BatchOrigin::Source& source);
  static std::optional<std::string> draw(Source& source, const model::PlanSample& sample);
  static std::optional<std::string> go_on(Source& source, const model::PlanSample& sample);

  bool from_start_;
  std::vector<Step> changes_;
  std::size_t next_change_ = 0;
  bool begun_ = false;    ///< A step was taken.
  bool skipped_ = false;  ///< What came before is not known.
  std::map<std::string, Producer, std::less<>> producers_;
  std::uint64_t samples_ = 0;
  std::uint64_t tokens_ = 0;
};

}  // namespace batchloom::store
