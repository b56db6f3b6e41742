// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "batchloom/store/head.h"

namespace batchloom::store {

/// Follows each producer through the entries of a stream, in step order, and tells where its
/// sequence numbers do not go on as they must: dense within a term and from one term to the next,
/// or from 0 again in a new term, after the row of a finished producer was dropped. Terms never
/// fall. One thread at a time.
class SequenceCheck {
 public:
  /// `from_start`: the first entry that follows is the stream's first, so every producer begins at
  /// 0. Otherwise each may begin anywhere.
  explicit SequenceCheck(bool from_start) : from_start_(from_start) {}

  /// Takes the next entry; what is wrong with it, if anything.
  std::optional<std::string> add(const Entry& entry);

  /// Some entries could not be read: what producers did there is unknown.
  void skip();

  /// All entries were added: what is wrong with the row that the newest head has for a producer.
  std::optional<std::string> check_row(const ProducerRow& row) const;

 private:
  struct Position {
    Term term;
    Seq next_seq;
  };

  bool from_start_;
  std::map<std::string, Position, std::less<>> positions_;
};

}  // namespace batchloom::store
