// SPDX-License-Identifier: Apache-2.0
// Which column chunks hold what a source asks for. Of ParquetFile alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "batchloom/sources/parquet_file.h"

namespace parquet {
class SchemaDescriptor;
}

namespace batchloom::sources {

/// Where the values of a column lie, and how deep.
struct ParquetLeaf {
  enum class Type : std::uint8_t { kText, kTruth, kInt32, kInt64 };

  Type type = Type::kText;
  int index = 0;                   ///< Of its chunk in each row group.
  std::int16_t present_level = 0;  ///< Definition levels below it: the row's value is null.
  std::int16_t element_level = 0;  ///< Of a list: levels below it say that it is empty.
  std::int16_t max_level = 0;      ///< Levels below it: a null element, or a null text.
  bool is_unsigned = false;
};

/// Or what is wrong with the column.
std::variant<ParquetLeaf, std::string> parquet_leaf(const parquet::SchemaDescriptor& schema,
                                                    const ParquetColumn& column);

/// What a file or libparquet says, in printable characters, and short.
std::string printable(std::string_view text);

}  // namespace batchloom::sources
