// SPDX-License-Identifier: Apache-2.0
// What every reader does with the ids of a record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "batchloom/sources/record_fields.h"
#include "batchloom/sources/shard_reader.h"
#include "batchloom/sources/tokenizer.h"

namespace batchloom::sources {

/// `out` keeps its place and its memory, and gets the ids that are put before each record.
void start_record(const TokenSettings& settings, Record& out);

/// Adds the ids that are put after each record. The mask, where `loss_on` needs one, is complete up
/// to here.
void finish_record(const TokenSettings& settings, LossOn loss_on, Record& out);

/// Leaves `out` its place only, as for a bad record.
void drop_record(Record& out);

/// Looks at the ids from number `first` on: nullopt, or which lies outside of the vocabulary.
std::optional<std::string> check_ids(const Record& record, std::size_t first, std::uint32_t vocab);

/// "id 9 is outside of the vocabulary of 8 ids".
std::string outside_vocab(std::string_view id, std::uint32_t vocab);

/// Frees a buffer of more than kKeptBytes.
template <class Vector>
void keep_little(Vector& buffer) {
  if (buffer.capacity() * sizeof(buffer[0]) > kKeptBytes) Vector().swap(buffer);
}

/// Ok, or `invalid`.
Status check_limits(const ReadLimits& limits);

/// Nullopt, or a record that is too large.
std::optional<BadRecord> check_record_bytes(const RecordName& name, const RecordPlace& place,
                                            const ReadLimits& limits);

}  // namespace batchloom::sources
