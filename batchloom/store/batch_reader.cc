// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/batch_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "batchloom/store/batch_range.h"
#include "batchloom/store/damage.h"
#include "batchloom/store/frame.h"
#include "batchloom/store/piece_fetch.h"

namespace batchloom::store {
namespace {

// The footer, and with it most indexes.
constexpr std::uint64_t kTailBytes = std::uint64_t{64} << 10;

using BytesPtr = std::shared_ptr<const Bytes>;
using IndexPtr = std::shared_ptr<const BatchIndex>;

Status check_rank(const Entry& entry, std::string_view key, model::HdpRank rank) {
  if (rank.value < entry.ranks) return Status::ok();
  return Status::invalid(
      fmt::format("{}: has runs of {} HDP ranks, and none of rank {}; read its "
                  "index, and plan the step again",
                  key, entry.ranks, rank.value));
}

Status check_position(const Entry& entry, std::string_view key, std::uint32_t position) {
  if (position < entry.steps) return Status::ok();
  return Status::invalid(
      fmt::format("{}: has {} steps, and none at position {}", key, entry.steps, position));
}

Result<IndexPtr> decode_index(const BatchContext& object, Slice index, ByteSpan bytes) {
  BL_ASSIGN_OR_RETURN(BatchIndex decoded, decode_batch_index(object, index.offset_bytes, bytes));
  return std::make_shared<const BatchIndex>(std::move(decoded));
}

// What the object's last bytes tell: where the index lies, and the index where it lies there.
struct Tail {
  Slice index;
  IndexPtr decoded;
};

Result<Tail> decode_tail(const BatchContext& object, Slice range, ByteSpan bytes) {
  if (bytes.size() < kBatchFooterBytes) {
    return corrupt_at(
        object.key, object.size_bytes,
        fmt::format("truncated: no room for a footer of {} bytes", kBatchFooterBytes));
  }
  Tail tail;
  BL_ASSIGN_OR_RETURN(tail.index, decode_batch_footer(object, bytes.last(kBatchFooterBytes)));
  if (tail.index.offset_bytes < range.offset_bytes) return tail;
  const ByteSpan index =
      bytes.subspan(tail.index.offset_bytes - range.offset_bytes, tail.index.size_bytes);
  BL_ASSIGN_OR_RETURN(tail.decoded, decode_index(object, tail.index, index));
  return tail;
}

}  // namespace

Result<std::vector<Run>> BatchReader::read_runs(const Entry& entry, model::HdpRank rank,
                                                const CallOptions& call) {
  const std::string key = data_key(entry.object());
  BL_RETURN_IF_ERROR(check_rank(entry, key, rank));
  BL_ASSIGN_OR_RETURN(const BatchContext object, describe_object(stream_, entry, key));
  BL_ASSIGN_OR_RETURN(const std::vector<RunRow> rows, rows_of(entry, rank, object, call));
  return fetch_runs(object, rank, rows, 0, call);
}

Result<Run> BatchReader::read_run(const Entry& entry, std::uint32_t position, model::HdpRank rank,
                                  const CallOptions& call) {
  const std::string key = data_key(entry.object());
  BL_RETURN_IF_ERROR(check_rank(entry, key, rank));
  BL_RETURN_IF_ERROR(check_position(entry, key, position));
  BL_ASSIGN_OR_RETURN(const BatchContext object, describe_object(stream_, entry, key));
  BL_ASSIGN_OR_RETURN(const std::vector<RunRow> rows, rows_of(entry, rank, object, call));
  BL_ASSIGN_OR_RETURN(
      std::vector<Run> runs,
      fetch_runs(object, rank, std::span(rows).subspan(position, 1), position, call));
  return std::move(runs.front());
}

Result<std::vector<RunRow>> BatchReader::rows_of(const Entry& entry, model::HdpRank rank,
                                                 const BatchContext& object,
                                                 const CallOptions& call) {
  const std::size_t size = rank_rows_bytes(entry.steps);
  if (!entry.run_table.empty()) {
    if (entry.run_table.size() != size * entry.ranks) {
      return corrupt_at(
          object.key, rank_rows_offset(model::HdpRank(0), entry.steps),
          fmt::format("its entry carries a run table of {} bytes; {} ranks and {} steps make {}",
                      entry.run_table.size(), entry.ranks, entry.steps, size * entry.ranks));
    }
    auto rows =
        decode_rank_rows(object, rank, ByteSpan(entry.run_table).subspan(size * rank.value, size));
    if (rows.is_ok()) return rows;
    return Status(rows.status().kind(),
                  fmt::format("{} (in the copy that its entry carries)", rows.status().message()));
  }
  if (auto cached = lookup(entry.object(), rank); !cached.empty()) return cached;
  const Slice range{.offset_bytes = rank_rows_offset(rank, entry.steps), .size_bytes = size};
  BL_ASSIGN_OR_RETURN(std::vector<RunRow> rows,
                      read_range(stream_, object, range, call, [&](const BytesPtr& bytes) {
                        return decode_rank_rows(object, rank, *bytes);
                      }));
  remember({.object = entry.object(), .rank = rank, .rows = rows});
  return rows;
}

Result<std::vector<Run>> BatchReader::fetch_runs(const BatchContext& object, model::HdpRank rank,
                                                 std::span<const RunRow> rows,
                                                 std::uint32_t first_position,
                                                 const CallOptions& call) {
  const std::uint64_t begin = rows.front().offset_bytes;
  const Slice range{.offset_bytes = begin, .size_bytes = rows.back().slice().end() - begin};
  const auto decode = [&](const BytesPtr& bytes) -> Result<std::vector<Run>> {
    std::vector<Run> runs;
    runs.reserve(rows.size());
    for (const RunRow& row : rows) {
      const ExpectedRun expected{
          .key = object.key,
          .identity = object.identity,
          .position = first_position + static_cast<std::uint32_t>(runs.size()),
          .rank = rank,
          .row = row};
      BL_ASSIGN_OR_RETURN(Run run, decode_run(expected, bytes, row.offset_bytes - begin));
      runs.push_back(std::move(run));
    }
    return runs;
  };
  return read_range(stream_, object, range, call, decode, &buffers_);
}

Result<IndexPtr> BatchReader::read_index(const Entry& entry, const CallOptions& call) {
  const std::string key = data_key(entry.object());
  BL_ASSIGN_OR_RETURN(const BatchContext object, describe_object(stream_, entry, key));
  const std::uint64_t tail_bytes = std::min(kTailBytes, object.size_bytes);
  const Slice tail_range{.offset_bytes = object.size_bytes - tail_bytes, .size_bytes = tail_bytes};
  BL_ASSIGN_OR_RETURN(Tail tail,
                      read_range(stream_, object, tail_range, call, [&](const BytesPtr& bytes) {
                        return decode_tail(object, tail_range, *bytes);
                      }));
  if (tail.decoded == nullptr) {
    BL_ASSIGN_OR_RETURN(tail.decoded,
                        read_range(stream_, object, tail.index, call, [&](const BytesPtr& bytes) {
                          return decode_index(object, tail.index, *bytes);
                        }));
  }
  const Slice front_range{.offset_bytes = 0,
                          .size_bytes = first_run_offset(object.ranks, object.steps)};
  BL_ASSIGN_OR_RETURN(const BatchFront front,
                      read_range(stream_, object, front_range, call, [&](const BytesPtr& bytes) {
                        return decode_batch_front(object, *bytes);
                      }));
  if (front.runs_end != tail.index.offset_bytes ||
      front.header.token_width != tail.decoded->token_width) {
    return corrupt_at(key, 0,
                      fmt::format("header and run table speak of ids of {} bytes and of runs "
                                  "that end at byte {}, index and footer of {} and {}",
                                  token_bytes(front.header.token_width), front.runs_end,
                                  token_bytes(tail.decoded->token_width), tail.index.offset_bytes));
  }
  return tail.decoded;
}

Result<FetchedPieces> BatchReader::read_pieces(const Entry& entry, const BatchIndex& index,
                                               std::uint32_t position,
                                               std::span<const std::uint32_t> pieces,
                                               const CallOptions& call) {
  const std::string key = data_key(entry.object());
  BL_ASSIGN_OR_RETURN(const BatchContext object, describe_object(stream_, entry, key));
  BL_RETURN_IF_ERROR(check_position(entry, key, position));
  if (index.identity != object.identity || index.steps.size() != entry.steps) {
    return Status::invalid(
        fmt::format("{}: read with the index of {}", key, to_string(index.identity)));
  }
  return fetch_pieces(stream_, object, index, position, pieces, call);
}

std::size_t BatchReader::Cached::bytes() const {
  constexpr std::size_t kNodeBytes = 256;  // List and map.
  return kNodeBytes + object.producer.size() + sizeof(RunRow) * rows.size();
}

/// Empty where they are not cached.
std::vector<RunRow> BatchReader::lookup(const DataName& object, model::HdpRank rank) {
  const MutexLock lock(mutex_);
  const auto found = by_key_.find({object.nonce.value, rank.value});
  if (found == by_key_.end() || found->second->object != object) return {};
  recent_.splice(recent_.begin(), recent_, found->second);
  return recent_.front().rows;
}

void BatchReader::remember(Cached cached) {
  const MutexLock lock(mutex_);
  const CacheKey key{cached.object.nonce.value, cached.rank.value};
  if (by_key_.contains(key)) return;
  cache_bytes_ += cached.bytes();
  recent_.push_front(std::move(cached));
  by_key_[key] = recent_.begin();
  while (cache_bytes_ > cache_bytes_max_ && recent_.size() > 1) {
    const Cached& oldest = recent_.back();
    cache_bytes_ -= oldest.bytes();
    by_key_.erase({oldest.object.nonce.value, oldest.rank.value});
    recent_.pop_back();
  }
}

}  // namespace batchloom::store
