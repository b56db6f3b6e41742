// SPDX-License-Identifier: Apache-2.0
// Pictures among the ids of a record: an id stands for each cell of a picture's grid, before the
// text and behind the ids that are put before each record. No label of theirs counts. Texts never
// give that id, so ids alone tell how large a record's picture is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "batchloom/base/bytes.h"
#include "batchloom/base/status.h"
#include "batchloom/sources/picture.h"
#include "batchloom/sources/record_fields.h"
#include "batchloom/sources/shard_reader.h"
#include "batchloom/sources/sidecar_view.h"
#include "batchloom/sources/tokenizer.h"

namespace batchloom::sources {

/// Which field of a record holds a picture, and what becomes of it.
struct PictureSettings {
  std::string field = {};  ///< Empty: records hold no pictures.
  PictureRules rules = {};
  TokenId token = 0;  ///< Stands for a cell.

  bool wanted() const { return !field.empty(); }
};

/// Ok, or `invalid`: rules out of range, an id outside of the vocabulary or among those around
/// records, ids where a text should be, or a field that holds something else.
Status check_pictures(const PictureSettings& pictures, const RecordFields& fields,
                      const TokenSettings& tokens);

/// The grid of a picture, of whose bytes only the header is looked at; else why it is none.
std::variant<PictureGrid, std::string> grid_of_bytes(ByteSpan encoded, const PictureRules& rules);

/// Adds the ids of a picture of `cells`, and the mask up to their end, to those that are put before
/// each record.
void add_picture(std::uint32_t cells, TokenId token, LossOn loss_on, Record& out);

/// Looks at ids that came of texts: nullopt, or that one of them is that of pictures.
std::optional<std::string> check_no_picture(std::span<const TokenId> ids,
                                            const PictureSettings& pictures);

/// How many ids of a record from number `first` on stand for its picture.
std::uint32_t picture_tokens(const StoredIds& ids, std::size_t first, TokenId token);

}  // namespace batchloom::sources
