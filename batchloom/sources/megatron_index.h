// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"
#include "batchloom/sources/byte_reader.h"
#include "batchloom/sources/shard_reader.h"

namespace batchloom::sources {

/// The type of the ids in a .bin file, by its number in the .idx file.
enum class MegatronType : std::uint8_t { kU8 = 1, kI8 = 2, kI16 = 3, kI32 = 4, kI64 = 5, kU16 = 8 };

std::uint32_t width_bytes(MegatronType type);

/// A document: where its ids lie in the .bin file, and how many they are.
struct MegatronDocument {
  RecordPlace place;
  std::uint64_t tokens = 0;
  /// Of the first of its sequences that has one; 0 where all are text.
  std::int8_t mode = 0;
};

/// An .idx file, read piece by piece: memory does not depend on its size. One thread at a time.
/// What an answer rests on was compared with what the file says of it elsewhere; `corruption` names
/// file, offset, what is there and what was expected.
class MegatronIndex {
 public:
  class Documents;

  /// Reads the head and the ends of the lists.
  static Result<MegatronIndex> open(std::unique_ptr<ByteReader> file, const CallOptions& call);

  std::uint64_t documents() const { return bounds_ - 1; }
  std::uint64_t sequences() const { return sequences_; }
  MegatronType type() const { return type_; }
  /// That the .bin file has.
  std::uint64_t data_bytes() const { return data_bytes_; }

  /// Precondition: `number` is below documents(). Takes as long as it has sequences.
  Result<MegatronDocument> document(std::uint64_t number, const CallOptions& call);

  /// All documents in one pass, and so a proof of the whole file; an error of `found` ends it.
  Status scan(const CallOptions& call, const std::function<Status(const MegatronDocument&)>& found);

 private:
  class List;
  class Sequences;

  explicit MegatronIndex(std::unique_ptr<ByteReader> file) : file_(std::move(file)) {}

  Status read_head(const CallOptions& call);
  Status check_size();
  Status check_ends(const CallOptions& call);
  Status check_bounds(std::uint64_t number, std::int64_t first, std::int64_t end) const;
  /// Between two sequences, before this one.
  Result<MegatronDocument> empty_document(std::uint64_t sequence, const CallOptions& call) const;
  Status fault(std::uint64_t offset, std::string_view what) const;

  std::uint64_t pointers_at() const;
  std::uint64_t bounds_at() const;
  std::uint64_t modes_at() const;

  std::unique_ptr<ByteReader> file_;
  MegatronType type_ = MegatronType::kU8;
  std::uint64_t sequences_ = 0;
  std::uint64_t bounds_ = 1;  ///< One more than documents.
  std::uint64_t data_bytes_ = 0;
  bool has_modes_ = false;
};

/// The documents from one on, one after another: the lists are read through buffers, and not anew
/// for each document. Errors as of document(); after one, begin again.
class MegatronIndex::Documents {
 public:
  /// `index` stays where it is for as long as this lives. Precondition: it has a document `first`.
  Documents(const MegatronIndex& index, std::uint64_t first);
  ~Documents();
  Documents(const Documents&) = delete;
  Documents& operator=(const Documents&) = delete;

  /// Which one next() gives.
  std::uint64_t number() const { return number_; }
  /// Precondition: there is one more.
  Result<MegatronDocument> next(const CallOptions& call);

 private:
  Status begin(const CallOptions& call);

  const MegatronIndex& index_;
  std::uint64_t number_;
  std::int64_t sequence_ = 0;  ///< The first one of the next document, once there are bounds.
  std::unique_ptr<List> bounds_;
  std::unique_ptr<Sequences> sequences_;
};

}  // namespace batchloom::sources
