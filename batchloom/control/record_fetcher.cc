// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/record_fetcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "batchloom/construction/record_cut.h"
#include "batchloom/control/record_tensors.h"

namespace batchloom::control {
namespace {

/// Each may keep sources::kKeptBytes of buffers.
constexpr std::size_t kIdleReaders = 64;

/// And what lies beyond in the last of the records that are read in one call.
constexpr std::uint64_t kReadTogetherBytes = std::uint64_t{256} << 10;

}  // namespace

/// One order through its samples, which it takes as they lie in their shards: a block may have
/// them in any order.
class RecordFetcher::Order {
 public:
  Order(RecordFetcher& fetcher, const FetchOrder& order, FetchPlace& place, const CallOptions& call)
      : fetcher_(fetcher),
        order_(order),
        place_(place),
        call_(call),
        source_(fetcher.sources_.source(order.source)),
        width_(construction::token_width_for(fetcher.vocab_)),
        builder_(options()) {}

  Result<Fetched> run() {
    const std::vector<Wanted> wanted = wanted_in_place();
    for (std::span<const Wanted> rest(wanted); !rest.empty();) {
      const model::ShardIndex shard = rest.front().place.shard;
      const auto end = std::ranges::find_if(
          rest, [&](const Wanted& sample) { return sample.place.shard != shard; });
      const auto count = static_cast<std::size_t>(end - rest.begin());
      BL_RETURN_IF_ERROR(fetch_shard(shard, rest.first(count)));
      note(rest.front(), FetchStage::kCheck);
      BL_RETURN_IF_ERROR(check_shard(shard));
      rest = rest.subspan(count);
    }
    Fetched fetched{.block = nullptr, .bad = std::move(bad_)};
    if (fetched.bad.empty()) fetched.block = builder_.finish();
    return fetched;
  }

 private:
  struct Wanted {
    sources::ShardRecord place;
    const model::SampleMeta* sample = nullptr;
  };
  using Reader = sources::ShardReader;

  void note(const Wanted& one, FetchStage stage) {
    const auto number = static_cast<std::uint32_t>(one.sample - order_.samples.data());
    place_.move_to({.sample = number, .stage = stage});
  }

  construction::SampleBlockOptions options() const {
    construction::SampleBlockOptions options{.step = order_.step,
                                             .source = order_.source,
                                             .vocab = fetcher_.vocab_,
                                             .samples = order_.samples.size()};
    for (const model::SampleMeta& sample : order_.samples) {
      options.payload_bytes += store::token_bytes(width_) * sample.tokens;
      for (const std::uint32_t patches : sample.image_patches) {
        options.payload_bytes += std::uint64_t{patches} * fetcher_.patch_bytes_;
      }
    }
    return options;
  }

  std::vector<Wanted> wanted_in_place() const {
    std::vector<Wanted> wanted;
    wanted.reserve(order_.samples.size());
    for (const model::SampleMeta& sample : order_.samples) {
      wanted.push_back({source_.locate(sample.id.index), &sample});
    }
    const auto in_place = [](const Wanted& one) {
      return std::tuple(one.place.shard, one.place.record, one.sample->id.part);
    };
    // Planned by id, they are so already, but where a source begins anew.
    if (!std::ranges::is_sorted(wanted, {}, in_place)) std::ranges::sort(wanted, {}, in_place);
    return wanted;
  }

  Status fetch_shard(model::ShardIndex shard, std::span<const Wanted> wanted) {
    const ShardOpener& opener = fetcher_.sources_.opener(order_.source);
    if (opener.keeps_ids() && !opener.pictures().wanted()) return copy_stored(shard, wanted);
    note(wanted.front(), FetchStage::kOpen);
    BL_ASSIGN_OR_RETURN(auto reader, fetcher_.take_reader({order_.source, shard}, call_));
    if (opener.keeps_ids()) {
      BL_RETURN_IF_ERROR(copy_with_pictures(*reader, shard, wanted));
    } else {
      BL_RETURN_IF_ERROR(read_shard(*reader, wanted));
    }
    fetcher_.give_back({order_.source, shard}, std::move(reader));
    return Status::ok();
  }

  /// From the index.
  Status copy_stored(model::ShardIndex shard, std::span<const Wanted> wanted) {
    const sources::SidecarIndex& index = *source_.shards()[shard.value].index;
    for (const Wanted& one : wanted) {
      note(one, FetchStage::kCopy);
      BL_ASSIGN_OR_RETURN(const sources::RecordPayload payload, index.payload(one.place.record));
      borrow_stored(payload);
      BL_RETURN_IF_ERROR(add(*one.sample));
    }
    return Status::ok();
  }

  /// Ids from the index, pictures from the shard.
  Status copy_with_pictures(Reader& reader, model::ShardIndex shard,
                            std::span<const Wanted> wanted) {
    const sources::SidecarIndex& index = *source_.shards()[shard.value].index;
    for (const Wanted& one : wanted) {
      note(one, FetchStage::kPicture);
      content_.tensors = {};
      if (one.sample->first_position == 0) {
        BL_ASSIGN_OR_RETURN(const auto bad,
                            tensors_.read(reader,
                                          {.record = one.place.record,
                                           .offset_bytes = one.sample->place.offset_bytes},
                                          call_));
        if (bad) bad_.push_back({one.sample->id, bad->message});
        content_.tensors = tensors_.tensors();
      }
      note(one, FetchStage::kCopy);
      BL_ASSIGN_OR_RETURN(const sources::RecordPayload payload, index.payload(one.place.record));
      borrow_stored(payload);
      BL_RETURN_IF_ERROR(add(*one.sample));
    }
    return Status::ok();
  }

  Status read_shard(Reader& reader, std::span<const Wanted> wanted) {
    const std::optional<sources::PlainIds> plain = reader.plain_ids();
    std::vector<Wanted> whole;
    const Wanted* held = nullptr;  // Its record is content_.
    for (const Wanted& one : wanted) {
      if (plain && is_whole(*plain, *one.sample)) {
        whole.push_back(one);
        continue;
      }
      if (held == nullptr || held->place.record != one.place.record) {
        held = nullptr;
        BL_ASSIGN_OR_RETURN(const bool good, read_record(reader, one));
        if (!good) continue;
        held = &one;
      }
      BL_RETURN_IF_ERROR(add(*one.sample));
    }
    return whole.empty() ? Status::ok() : read_whole(reader, plain->file, whole);
  }

  /// Whether its bytes in the shard are those of a block.
  bool is_whole(const sources::PlainIds& plain, const model::SampleMeta& sample) const {
    return plain.id_bytes == store::token_bytes(width_) && sample.first_position == 0 &&
           sample.place.size_bytes == std::uint64_t{sample.tokens} * plain.id_bytes;
  }

  /// Straight into the block, some at a time: their ids are looked at while they are in a cache.
  Status read_whole(Reader& reader, sources::ByteReader& file, std::span<const Wanted> wanted) {
    while (!wanted.empty()) {
      std::size_t count = 0;
      for (std::uint64_t bytes = 0; count < wanted.size() && bytes < kReadTogetherBytes; ++count) {
        bytes += wanted[count].sample->place.size_bytes;
      }
      BL_RETURN_IF_ERROR(read_together(reader, file, wanted.first(count)));
      wanted = wanted.subspan(count);
    }
    return Status::ok();
  }

  Status read_together(Reader& reader, sources::ByteReader& file, std::span<const Wanted> wanted) {
    const std::size_t first = builder_.samples();
    for (const Wanted& one : wanted) BL_RETURN_IF_ERROR(builder_.add_whole(*one.sample));
    note(wanted.front(), FetchStage::kReadMany);
    BL_RETURN_IF_ERROR(file.read_all(stretches_of(wanted, first), call_));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (builder_.check_whole(first + i)) continue;
      BL_ASSIGN_OR_RETURN(const bool good, read_record(reader, wanted[i]));
      if (!good) continue;
      return Status::conflict(fmt::format(
          "{}: record {} was read twice, and not with the same ids: is the file being written?",
          reader.name(), wanted[i].place.record));
    }
    return Status::ok();
  }

  /// Where the builder's samples from `first` on come from, neighbours as one.
  std::vector<sources::ReadStretch> stretches_of(std::span<const Wanted> wanted,
                                                 std::size_t first) {
    std::vector<sources::ReadStretch> stretches;
    stretches.reserve(wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const std::uint64_t offset = wanted[i].sample->place.offset_bytes;
      const std::span<std::byte> tokens = builder_.tokens_of(first + i);
      if (!stretches.empty() && stretches.back().offset + stretches.back().out.size() == offset) {
        std::span<std::byte>& out = stretches.back().out;
        out = {out.data(), out.size() + tokens.size()};
      } else {
        stretches.push_back({offset, tokens});
      }
    }
    return stretches;
  }

  /// Into content_. False, and it is noted, where the record is bad.
  Result<bool> read_record(Reader& reader, const Wanted& one) {
    note(one, FetchStage::kRead);
    BL_ASSIGN_OR_RETURN(const std::uint32_t tokens, source_.tokens(one.sample->id.index));
    if (construction::part_count(fetcher_.sources_.cut_rule(), tokens) > 1) {
      return read_long_record(reader, one, tokens);
    }
    BL_ASSIGN_OR_RETURN(const auto bad, reader.read(one.place.record, call_, record_));
    return take(one, bad, record_);
  }

  Result<bool> read_long_record(Reader& reader, const Wanted& one, std::uint32_t tokens) {
    const auto read = [&]() -> Result<ReadRecord> {
      ReadRecord record;
      BL_ASSIGN_OR_RETURN(record.bad, reader.read(one.place.record, call_, record.record));
      return record;
    };
    const LongRecords::Wanted wanted{.name = {order_.source, one.sample->id.index}, .ids = tokens};
    BL_ASSIGN_OR_RETURN(long_record_, fetcher_.long_records_.get(wanted, read, call_));
    return take(one, long_record_->bad, long_record_->record);
  }

  bool take(const Wanted& one, const std::optional<sources::BadRecord>& bad,
            const sources::Record& record) {
    if (bad) {
      bad_.push_back({one.sample->id, bad->message});
    } else {
      borrow_record(record);
    }
    return !bad.has_value();
  }

  /// A part of what content_ is.
  Status add(const model::SampleMeta& sample) {
    if (!bad_.empty()) return Status::ok();
    BL_ASSIGN_OR_RETURN(
        const construction::PartContent part,
        construction::cut_part(fetcher_.sources_.cut_rule(), content_, sample.id.part));
    return builder_.add(sample, part);
  }

  /// What was taken from indexes is what shards still hold.
  Status check_shard(model::ShardIndex shard) const {
    const sources::IndexedShard& indexed = source_.shards()[shard.value];
    BL_ASSIGN_OR_RETURN(const sources::FileStamp now, sources::stamp_of(indexed.path));
    return sources::check_unchanged(indexed.path, indexed.stamp, now);
  }

  void borrow_stored(const sources::RecordPayload& payload) {
    learned_.clear();
    for (std::size_t i = 0; i < payload.loss.size(); ++i) {
      learned_.push_back({payload.loss[i].begin, payload.loss[i].end});
    }
    content_.tokens = {payload.ids.bytes(), payload.ids.width_bytes() == 2
                                                ? store::TokenWidth::k16
                                                : store::TokenWidth::k32};
    content_.mask = std::span<const construction::LearnedInterval>(learned_);
  }

  void borrow_record(const sources::Record& record) {
    content_.tokens = construction::TokenSpan(std::span<const std::uint32_t>(record.ids));
    content_.mask.reset();
    if (record.loss_mask.empty()) return;
    learned_ = construction::learned_intervals(record.loss_mask);
    content_.mask = std::span<const construction::LearnedInterval>(learned_);
  }

  RecordFetcher& fetcher_;
  const FetchOrder& order_;
  FetchPlace& place_;
  const CallOptions& call_;
  const sources::RecordSource& source_;
  const store::TokenWidth width_;
  construction::SampleBlockBuilder builder_;
  sources::Record record_;
  ReadRecordPtr long_record_;  // Instead of record_, where it has several parts.
  std::vector<construction::LearnedInterval> learned_;
  RecordTensors tensors_;
  construction::RecordContent content_;  // Borrows these, or an index.
  std::vector<BadSample> bad_;
};

RecordFetcher::RecordFetcher(Runtime& runtime, const SourceSet& sources, sources::FilePool& pool,
                             const RecordFetcherOptions& options)
    : sources_(sources),
      pool_(pool),
      vocab_(options.vocab),
      patch_bytes_(options.patch_bytes),
      long_records_(runtime, options.long_records_bytes) {}
RecordFetcher::~RecordFetcher() = default;

Result<Fetched> RecordFetcher::fetch(const FetchOrder& order, FetchPlace& place,
                                     const CallOptions& call) {
  return Order(*this, order, place, call).run();
}

Result<std::unique_ptr<sources::ShardReader>> RecordFetcher::take_reader(const ShardName& shard,
                                                                         const CallOptions& call) {
  {
    const MutexLock lock(mutex_);
    const auto found = std::ranges::find(idle_, shard, &IdleReader::shard);
    if (found != idle_.end()) {
      std::unique_ptr<sources::ShardReader> reader = std::move(found->reader);
      idle_.erase(found);
      return reader;
    }
  }
  const sources::RecordSource& source = sources_.source(shard.source);
  BL_ASSIGN_OR_RETURN(auto file, source.open_shard(shard.shard, pool_, call));
  return sources_.opener(shard.source).open(std::move(file), pool_, call);
}

void RecordFetcher::give_back(const ShardName& shard,
                              std::unique_ptr<sources::ShardReader> reader) {
  std::unique_ptr<sources::ShardReader> oldest;  // Closed outside of the lock.
  const MutexLock lock(mutex_);
  idle_.push_back({shard, std::move(reader)});
  if (idle_.size() <= kIdleReaders) return;
  oldest = std::move(idle_.front().reader);
  idle_.erase(idle_.begin());
}

}  // namespace batchloom::control
