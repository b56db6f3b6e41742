// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/parquet_file.h"

#include <fmt/format.h>
#include <parquet/column_reader.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>

#include <algorithm>
#include <array>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>
#include <variant>

#include "batchloom/sources/faults.h"
#include "batchloom/sources/parquet_schema.h"
#include "batchloom/sources/parquet_storage.h"

namespace batchloom::sources {
namespace {

constexpr std::int64_t kStreamBytes = 64 << 10;  ///< Of a column chunk, read at once.
constexpr std::int64_t kLevels = 1024;           ///< Elements of lists, decoded at once.

/// The texts of a column chunk, row after row.
class TextCursor {
 public:
  TextCursor(std::shared_ptr<parquet::RowGroupReader> group, const ParquetLeaf& leaf)
      : group_(std::move(group)), leaf_(leaf), reader_(group_->Column(leaf.index)) {}

  std::uint64_t next() const { return next_; }

  /// Precondition: `row` is not before next(). False where the column ends before.
  bool take(std::uint64_t row, std::optional<std::string_view>& out) {
    auto& reader = static_cast<parquet::ByteArrayReader&>(*reader_);
    const auto skipped = static_cast<std::int64_t>(row - next_);
    if (skipped > 0 && reader.Skip(skipped) != skipped) return false;
    std::int16_t level = leaf_.max_level;
    std::int64_t values = 0;
    parquet::ByteArray value;
    if (!reader.HasNext() || reader.ReadBatch(1, &level, nullptr, &value, &values) != 1) {
      return false;
    }
    out.reset();
    if (level == leaf_.max_level && values == 1) {
      out = std::string_view(reinterpret_cast<const char*>(value.ptr), value.len);
    }
    next_ = row + 1;
    return (level == leaf_.max_level) == out.has_value();
  }

 private:
  std::shared_ptr<parquet::RowGroupReader> group_;
  ParquetLeaf leaf_;
  std::shared_ptr<parquet::ColumnReader> reader_;
  std::uint64_t next_ = 0;
};

/// The lists of a column chunk, row after row.
template <class Type>
class ListCursor {
 public:
  ListCursor(std::shared_ptr<parquet::RowGroupReader> group, const ParquetLeaf& leaf)
      : group_(std::move(group)), leaf_(leaf), reader_(group_->Column(leaf.index)) {}

  std::uint64_t next() const { return next_; }

  /// As that of texts, and the column must have an end where the last of `rows` has it.
  bool take(std::uint64_t row, std::uint64_t rows, std::uint64_t max_numbers, ParquetList& out) {
    while (next_ < row) {
      if (!next_list(0, out)) return false;
    }
    if (!next_list(max_numbers, out)) return false;
    return next_ < rows || (at_ == levels_ && !reader_->HasNext());
  }

 private:
  using Value = typename Type::c_type;

  bool next_list(std::uint64_t max_numbers, ParquetList& out) {
    out = {.numbers = std::move(out.numbers)};
    out.numbers.clear();
    if (at_ == levels_ && !fill()) return false;
    const std::int16_t level = definition_[at_];
    if (repetition_[at_] != 0) return false;
    ++next_;
    if (level < leaf_.element_level) {
      out.is_null = level < leaf_.present_level;
      ++at_;
      return at_ < levels_ || !fill() || repetition_[at_] == 0;
    }
    do {
      if (!take_element(max_numbers, out)) return false;
    } while ((at_ < levels_ || fill()) && repetition_[at_] != 0);
    return true;
  }

  bool take_element(std::uint64_t max_numbers, ParquetList& out) {
    const std::int16_t level = definition_[at_++];
    if (level < leaf_.element_level) return false;
    const bool is_null = level < leaf_.max_level;
    if (!is_null && value_at_ == values_) return false;
    if (is_null && !out.first_null) out.first_null = out.size;
    if (out.size++ < max_numbers) out.numbers.push_back(is_null ? 0 : number(buffer_[value_at_]));
    if (!is_null) ++value_at_;
    return true;
  }

  std::int64_t number(Value value) const {
    if constexpr (std::is_same_v<Value, std::int32_t>) {
      if (leaf_.is_unsigned) return static_cast<std::uint32_t>(value);
    }
    return static_cast<std::int64_t>(value);
  }

  bool fill() {
    // No level is read where there is but one that it can have.
    definition_.fill(leaf_.max_level);
    repetition_.fill(0);
    at_ = levels_ = value_at_ = values_ = 0;
    // 0 levels may come of a page without values.
    while (levels_ == 0 && reader_->HasNext()) {
      std::int64_t values = 0;
      auto& reader = static_cast<parquet::TypedColumnReader<Type>&>(*reader_);
      levels_ = static_cast<std::size_t>(reader.ReadBatch(
          kLevels, definition_.data(), repetition_.data(), buffer_.data(), &values));
      values_ = static_cast<std::size_t>(values);
    }
    return levels_ > 0;
  }

  std::shared_ptr<parquet::RowGroupReader> group_;
  ParquetLeaf leaf_;
  std::shared_ptr<parquet::ColumnReader> reader_;
  std::uint64_t next_ = 0;
  // What is decoded and not taken.
  std::array<std::int16_t, kLevels> definition_;
  std::array<std::int16_t, kLevels> repetition_;
  std::array<Value, kLevels> buffer_;
  std::size_t at_ = 0;
  std::size_t levels_ = 0;
  std::size_t value_at_ = 0;
  std::size_t values_ = 0;
};

using Cursor = std::variant<std::monostate, std::unique_ptr<TextCursor>,
                            std::unique_ptr<ListCursor<parquet::BooleanType>>,
                            std::unique_ptr<ListCursor<parquet::Int32Type>>,
                            std::unique_ptr<ListCursor<parquet::Int64Type>>>;

Cursor cursor_at(std::shared_ptr<parquet::RowGroupReader> group, const ParquetLeaf& leaf) {
  switch (leaf.type) {
    case ParquetLeaf::Type::kTruth:
      return std::make_unique<ListCursor<parquet::BooleanType>>(std::move(group), leaf);
    case ParquetLeaf::Type::kInt32:
      return std::make_unique<ListCursor<parquet::Int32Type>>(std::move(group), leaf);
    case ParquetLeaf::Type::kInt64:
      return std::make_unique<ListCursor<parquet::Int64Type>>(std::move(group), leaf);
    case ParquetLeaf::Type::kText: break;
  }
  return std::make_unique<TextCursor>(std::move(group), leaf);
}

struct Column {
  ParquetColumn asked;
  ParquetLeaf leaf = {};
  Cursor cursor = {};
  std::size_t group = 0;  ///< The cursor's.
};

struct RowGroup {
  std::uint64_t first_row = 0;
  std::uint64_t rows = 0;
  std::uint64_t offset = 0;  ///< Of the first page of the first column that is read.
};

}  // namespace

class ParquetFile::Impl {
 public:
  Impl(std::unique_ptr<ByteReader> file, std::vector<ParquetColumn> columns,
       std::uint64_t max_bytes)
      : storage_(std::move(file), max_bytes) {
    for (ParquetColumn& column : columns) columns_.push_back({.asked = std::move(column)});
  }

  std::string_view name() const { return storage_.file().name(); }
  std::uint64_t rows() const { return rows_; }
  const RowGroup& group_of(std::uint64_t row) const {
    return *std::prev(std::ranges::upper_bound(groups_, row, {}, &RowGroup::first_row));
  }
  bool is_unsigned(std::size_t column) const { return columns_[column].leaf.is_unsigned; }

  Status open(const CallOptions& call) {
    const auto where = [&] { return Where{storage_.file().size_bytes(), "its footer"}; };
    return attempt(where, call, [&] {
      parquet::ReaderProperties properties(&storage_.pool());
      properties.enable_buffered_stream();
      properties.set_buffer_size(kStreamBytes);
      properties.set_page_checksum_verification(true);
      reader_ = parquet::ParquetFileReader::Open(storage_.as_arrow(), properties);
      BL_RETURN_IF_ERROR(find_columns());
      return find_groups();
    });
  }

  Result<std::optional<std::string_view>> text(std::size_t column, std::uint64_t row,
                                               const CallOptions& call) {
    std::optional<std::string_view> found;
    BL_RETURN_IF_ERROR(take(column, row, call, [&](Column& from, const RowGroup& group) {
      return std::get<std::unique_ptr<TextCursor>>(from.cursor)->take(row - group.first_row, found);
    }));
    return found;
  }

  Status list(std::size_t column, std::uint64_t row, std::uint64_t max_numbers,
              const CallOptions& call, ParquetList& out) {
    return take(column, row, call, [&](Column& from, const RowGroup& group) {
      return std::visit(
          [&](const auto& cursor) {
            if constexpr (requires { cursor->take(row, group.rows, max_numbers, out); }) {
              return cursor->take(row - group.first_row, group.rows, max_numbers, out);
            }
            return false;
          },
          from.cursor);
    });
  }

 private:
  struct Where {
    std::uint64_t offset_bytes = 0;
    std::string what;
  };

  /// Does `use`, whose exceptions become a Status. After an error every column begins anew.
  template <class WhereOf, class Use>
  Status attempt(const WhereOf& where_of, const CallOptions& call, const Use& use) {
    storage_.begin(call);
    Status failed;
    try {
      failed = use();
      if (failed.is_ok()) return failed;
    } catch (const std::bad_alloc&) {
      failed = Status::exhausted(fmt::format("{}: no memory to read it", name()));
    } catch (const std::exception& error) {
      failed = explain(where_of(), error.what());
    }
    for (Column& column : columns_) column.cursor = {};
    return failed;
  }

  Status explain(const Where& where, std::string_view error) const {
    if (!storage_.error().is_ok()) return storage_.error();
    if (storage_.is_refused()) {
      return fault(where, fmt::format("needs more than {} bytes of memory for pages at once; write "
                                      "the file with smaller pages",
                                      storage_.max_bytes()));
    }
    return fault(where, fmt::format("cannot be read: {}", printable(error)));
  }
  Status fault(const Where& where, std::string_view what) const {
    return shard_fault(name(), where.offset_bytes, fmt::format("{} {}", where.what, what));
  }

  Status find_columns() {
    const parquet::FileMetaData& about = *reader_->metadata();
    for (Column& column : columns_) {
      auto found = parquet_leaf(*about.schema(), column.asked);
      if (const auto* wrong = std::get_if<std::string>(&found)) {
        return shard_fault(name(), storage_.file().size_bytes(), *wrong);
      }
      column.leaf = std::get<ParquetLeaf>(found);
    }
    return Status::ok();
  }

  Status find_groups() {
    const parquet::FileMetaData& about = *reader_->metadata();
    for (int i = 0; i < about.num_row_groups(); ++i) {
      const auto group = about.RowGroup(i);
      const auto first = group->ColumnChunk(columns_.front().leaf.index);
      std::int64_t offset = first->data_page_offset();
      if (first->has_dictionary_page()) offset = std::min(offset, first->dictionary_page_offset());
      if (group->num_rows() < 0 || offset < 0) return contradiction(groups_.size());
      groups_.push_back({.first_row = rows_,
                         .rows = static_cast<std::uint64_t>(group->num_rows()),
                         .offset = static_cast<std::uint64_t>(offset)});
      rows_ += groups_.back().rows;
      BL_RETURN_IF_ERROR(check_chunks(*group));
    }
    if (static_cast<std::int64_t>(rows_) == about.num_rows()) return Status::ok();
    return shard_fault(name(), storage_.file().size_bytes(),
                       fmt::format("its row groups have {} rows, and the file says it has {}",
                                   rows_, about.num_rows()));
  }

  Status check_chunks(const parquet::RowGroupMetaData& group) {
    for (const Column& column : columns_) {
      const auto chunk = group.ColumnChunk(column.leaf.index);
      if (!chunk->file_path().empty()) {
        return fault(where_in(column, groups_.back()), "lies in another file");
      }
      const bool is_list = column.asked.content != ParquetContent::kText;
      const std::int64_t values = chunk->num_values();
      if (is_list ? values < group.num_rows() : values != group.num_rows()) {
        return fault(where_in(column, groups_.back()),
                     fmt::format("has {} values for {} rows", values, group.num_rows()));
      }
    }
    return Status::ok();
  }

  Status contradiction(std::size_t group) const {
    return shard_fault(name(), storage_.file().size_bytes(),
                       fmt::format("row group {}: numbers below 0 in the footer", group));
  }

  Where where_in(const Column& column, const RowGroup& group) const {
    return {group.offset,
            fmt::format("row group {}: column '{}'", &group - groups_.data(), column.asked.name)};
  }

  /// `take_from` says whether the row's value was there.
  template <class TakeFrom>
  Status take(std::size_t column, std::uint64_t row, const CallOptions& call,
              const TakeFrom& take_from) {
    Column& from = columns_[column];
    const RowGroup& group = group_of(row);
    const auto where = [&] { return where_in(from, group); };
    return attempt(where, call, [&] {
      seek(from, group, row - group.first_row);
      if (take_from(from, group)) return Status::ok();
      return fault(where(),
                   fmt::format("does not hold the {} rows that the footer says", group.rows));
    });
  }

  void seek(Column& column, const RowGroup& group, std::uint64_t row) {
    const auto number = static_cast<std::size_t>(&group - groups_.data());
    const std::uint64_t next = std::visit(
        [](const auto& cursor) -> std::uint64_t {
          if constexpr (requires { cursor->next(); }) return cursor->next();
          return UINT64_MAX;
        },
        column.cursor);
    if (column.group == number && next <= row) return;
    column.cursor = {};
    column.cursor = cursor_at(reader_->RowGroup(static_cast<int>(number)), column.leaf);
    column.group = number;
  }

  ParquetStorage storage_;  // Before the reader, whose memory it gives.
  std::unique_ptr<parquet::ParquetFileReader> reader_;
  std::vector<Column> columns_;
  std::vector<RowGroup> groups_;
  std::uint64_t rows_ = 0;
};

ParquetFile::ParquetFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ParquetFile::~ParquetFile() = default;

Result<std::unique_ptr<ParquetFile>> ParquetFile::open(std::unique_ptr<ByteReader> file,
                                                       std::vector<ParquetColumn> columns,
                                                       std::uint64_t max_bytes,
                                                       const CallOptions& call) {
  auto impl = std::make_unique<Impl>(std::move(file), std::move(columns), max_bytes);
  BL_RETURN_IF_ERROR(impl->open(call));
  return std::unique_ptr<ParquetFile>(new ParquetFile(std::move(impl)));
}

std::string_view ParquetFile::name() const {
  return impl_->name();
}
std::uint64_t ParquetFile::rows() const {
  return impl_->rows();
}
std::uint64_t ParquetFile::offset_of(std::uint64_t row) const {
  return impl_->group_of(row).offset;
}
bool ParquetFile::is_unsigned(std::size_t column) const {
  return impl_->is_unsigned(column);
}

Result<std::optional<std::string_view>> ParquetFile::text(std::size_t column, std::uint64_t row,
                                                          const CallOptions& call) {
  return impl_->text(column, row, call);
}

Status ParquetFile::list(std::size_t column, std::uint64_t row, std::uint64_t max_numbers,
                         const CallOptions& call, ParquetList& out) {
  return impl_->list(column, row, max_numbers, call, out);
}

}  // namespace batchloom::sources
