// SPDX-License-Identifier: Apache-2.0
// What can go wrong where shards are read, and how a caller tells one from another.
//
//   what                                          comes as            what to do
//   a bad record: it does not parse or decode,    a BadRecord, never  take another in its place,
//   lacks a field, has one of another type, an    a Status            and record that; stop where
//   id outside the vocabulary, or is too large                        the budget is spent
//   a faulty shard: its records cannot be         `corruption`        refuse the shard by name;
//   numbered, or lengths and offsets contradict                       never retry
//   the data
//   the storage: a slow or broken disk            `unavailable`       retry, then stop
//   the storage: no such file                     `not_found`         stop
//   too many open files, no memory                `exhausted`         stop
//   the caller's stop token                       `cancelled`
//   a setting, a permission, a record's number    `invalid`           fix it
//
// Content alone decides the first two, so that every run and every host decides alike; timing never
// does. After any error the reader is as before, and the call may be repeated.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "batchloom/base/status.h"

namespace batchloom::sources {

/// Why a record cannot be used.
enum class BadRecordReason : std::uint8_t {
  kTooLarge,   ///< More bytes than ReadLimits allow.
  kEncoding,   ///< No UTF-8, or an escape that is no character.
  kSyntax,     ///< Not what the format says a record is.
  kField,      ///< A field is missing, null, there twice, or of another type or length.
  kTokenId,    ///< An id below 0, or at or above the vocabulary.
  kPicture,    ///< Neither JPEG nor PNG, or one that does not decode.
  kNotText,    ///< A picture, say, where tokens were expected.
  kTokenizer,  ///< The function that makes ids of its texts raises an exception.
};

/// "too_large", "encoding", ...
std::string_view to_string(BadRecordReason reason);

/// A record whose content makes it useless, while the others of its shard are as good as ever.
struct BadRecord {
  BadRecordReason reason = BadRecordReason::kSyntax;
  /// "<shard>: record <number> at offset <bytes>: <what is wrong>".
  std::string message;

  friend bool operator==(const BadRecord&, const BadRecord&) = default;
};

/// Where a record stands, for the message of a BadRecord or of a fault.
struct RecordName {
  std::string_view shard;
  std::uint64_t record = 0;
  std::uint64_t offset_bytes = 0;
};

/// "<shard>: record <number> at offset <bytes>".
std::string to_string(const RecordName& name);

BadRecord bad_record(const RecordName& name, BadRecordReason reason, std::string_view what);

/// `corruption`: "<shard>: offset <bytes>: <what>".
Status shard_fault(std::string_view shard, std::uint64_t offset_bytes, std::string_view what);

}  // namespace batchloom::sources
