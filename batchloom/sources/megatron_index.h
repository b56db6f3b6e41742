// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "batchloom/base/bytes.h"
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
  /// Of its first sequence that is not text; 0 where all are.
  std::int8_t mode = 0;
};

/// An .idx file, read piece by piece: memory does not depend on its size. One thread at a time.
/// Every answer was checked against what the file says elsewhere; `corruption` names file, offset,
/// what is there and what was expected.
class MegatronIndex {
 public:
  /// Reads the head and the ends of the lists.
  static Result<MegatronIndex> open(std::unique_ptr<ByteReader> file, const CallOptions& call);

  std::uint64_t documents() const { return documents_; }
  std::uint64_t sequences() const { return sequences_; }
  MegatronType type() const { return type_; }
  /// That the .bin file has.
  std::uint64_t data_bytes() const { return data_bytes_; }

  /// Precondition: `document` is below documents(). Time and I/O as its number of sequences.
  Result<MegatronDocument> document(std::uint64_t document, const CallOptions& call);

  /// All documents in one pass; an error of `found` ends it.
  Status scan(const CallOptions& call, const std::function<Status(const MegatronDocument&)>& found);

 private:
  struct Sequences {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
  };

  explicit MegatronIndex(std::unique_ptr<ByteReader> file) : file_(std::move(file)) {}

  Status read_head(const CallOptions& call);
  Status check_size();
  Status check_ends(const CallOptions& call);
  Result<std::uint64_t> list_entry(std::uint64_t offset, std::string_view what,
                                   const CallOptions& call);
  Status fault(std::uint64_t offset, std::string_view what) const;

  std::unique_ptr<ByteReader> file_;
  MegatronType type_ = MegatronType::kU8;
  std::uint64_t sequences_ = 0;
  std::uint64_t documents_ = 0;
  std::uint64_t data_bytes_ = 0;
  bool has_modes_ = false;
  Bytes buffer_;
};

}  // namespace batchloom::sources
