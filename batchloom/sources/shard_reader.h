// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "batchloom/base/bytes.h"
#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"
#include "batchloom/sources/byte_reader.h"
#include "batchloom/sources/faults.h"
#include "batchloom/sources/picture.h"

namespace batchloom::sources {

using TokenId = std::uint32_t;

/// Where a record's bytes lie in its shard.
struct RecordPlace {
  std::uint64_t offset_bytes = 0;
  std::uint64_t size_bytes = 0;

  friend bool operator==(const RecordPlace&, const RecordPlace&) = default;
};

/// The text or the prompt, and the answer, of a record whose ids are made later.
struct OwnedTexts {
  std::string text = {};
  std::string answer = {};

  friend bool operator==(const OwnedTexts&, const OwnedTexts&) = default;
};

/// One record, tokenized.
struct Record {
  RecordPlace place;
  /// With those that are put before and after each record; may be empty.
  std::vector<TokenId> ids;
  /// Per id: 1 where the loss counts it as the label of the id before it, else 0. Empty: all count.
  std::vector<std::uint8_t> loss_mask;
  /// Of a reader whose tokenizer takes texts in batches (batch_tokenizer.h), instead of ids.
  OwnedTexts texts = {};

  friend bool operator==(const Record&, const Record&) = default;
};

/// A picture of a record, as its shard holds it: JPEG or PNG.
struct RecordPicture {
  std::uint32_t token = 0;  ///< Its first one in the record, of grid.tokens().
  PictureGrid grid;
  Bytes encoded;
};

/// A record as planning counts it.
struct RecordSize {
  RecordPlace place;
  std::uint32_t tokens = 0;
  /// Labels, after the shift by one, that the loss counts: never that of the first id.
  std::uint32_t valid_labels = 0;

  friend bool operator==(const RecordSize&, const RecordSize&) = default;
};

RecordSize size_of(const Record& record);

struct ReadLimits {
  /// A record of more bytes in its shard is a bad record; 1 to kMaxRecordBytes. While a reader
  /// reads one, it needs up to twelve times as much memory; it gives back what is above kKeptBytes.
  std::uint64_t max_record_bytes = std::uint64_t{256} << 20;
};

/// Of which a reader counts the tokens in 32 bits.
inline constexpr std::uint64_t kMaxRecordBytes = std::uint64_t{1} << 31;

/// Of its buffers, what a reader keeps from one record to the next.
inline constexpr std::uint64_t kKeptBytes = std::uint64_t{4} << 20;

/// A file in which each record that a shard's index tells of is a stretch of its ids and nothing
/// else: little-endian, all labels count. Ids outside of the vocabulary are for the taker to find.
struct PlainIds {
  ByteReader& file;  ///< The shard reader's.
  std::uint32_t id_bytes = 0;
};

/// The records of one shard, numbered from 0 in the shard's order. Reading is a pure function of
/// the shard and the settings: neither the order of calls nor other readers change a record. What
/// going from one record to another costs depends on the format.
/// One thread at a time; any number of readers of a shard may be open. Before something is read, a
/// reader holds no buffers; afterwards kKeptBytes at most, and what a format needs to go on from
/// where it is: a decoder, or pages. Every format's reader passes reader_conformance_testing.h.
class ShardReader {
 public:
  virtual ~ShardReader() = default;

  /// What errors call the shard: its path.
  virtual std::string_view name() const = 0;
  virtual std::uint64_t records() const = 0;

  /// Reads a record into `out`, whose memory is used again: nullopt, or why the record is bad, and
  /// then `out` has only its place. Blocks for as long as the storage does. Other errors: faults.h;
  /// `invalid` for a number that is not below records().
  virtual Result<std::optional<BadRecord>> read(std::uint64_t record, const CallOptions& call,
                                                Record& out) = 0;

  /// What size_of() a good record is, maybe without reading its data: then a record that read()
  /// finds bad may have a size.
  virtual Result<std::optional<BadRecord>> measure(std::uint64_t record, const CallOptions& call,
                                                   RecordSize& out);

  /// The pictures of a record, by ascending token; most formats hold none. Only headers of them are
  /// looked at: one that does not decode is for the taker to find. Else as read().
  virtual Result<std::optional<BadRecord>> read_pictures(std::uint64_t record,
                                                         const CallOptions& call,
                                                         std::vector<RecordPicture>& out);

  /// Where good records can be taken from as they lie, without read(); nullopt where they cannot.
  virtual std::optional<PlainIds> plain_ids() { return std::nullopt; }

 protected:
  /// Ok, or `invalid` for a record that is not there.
  Status check_number(std::uint64_t record) const;

 private:
  Record scratch_;  ///< Of measure().
};

}  // namespace batchloom::sources
