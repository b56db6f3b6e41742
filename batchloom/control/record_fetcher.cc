// SPDX-License-Identifier: Apache-2.0
#include "batchloom/control/record_fetcher.h"

#include <algorithm>
#include <set>
#include <utility>

#include "batchloom/construction/record_cut.h"

namespace batchloom::control {
namespace {

/// Each may keep sources::kKeptBytes of buffers.
constexpr std::size_t kIdleReaders = 64;

}  // namespace

/// One order's way through its samples.
class RecordFetcher::Order {
 public:
  Order(RecordFetcher& fetcher, const FetchOrder& order, const CallOptions& call)
      : fetcher_(fetcher), order_(order), call_(call) {}

  Result<Fetched> run() {
    construction::SampleBlockBuilder builder(options());
    for (const model::SampleMeta& sample : order_.samples) {
      BL_RETURN_IF_ERROR(add(sample, builder));
    }
    BL_RETURN_IF_ERROR(check_shards());
    give_back();
    Fetched fetched{.block = nullptr, .bad = std::move(bad_)};
    if (fetched.bad.empty()) fetched.block = builder.finish();
    return fetched;
  }

 private:
  construction::SampleBlockOptions options() const {
    construction::SampleBlockOptions options{
        .step = order_.step, .source = order_.source, .vocab = fetcher_.vocab_};
    const auto width = store::token_bytes(construction::token_width_for(fetcher_.vocab_));
    for (const model::SampleMeta& sample : order_.samples) {
      options.payload_bytes += width * sample.tokens;
    }
    return options;
  }

  Status add(const model::SampleMeta& sample, construction::SampleBlockBuilder& builder) {
    const sources::RecordSource& source = fetcher_.sources_.source(order_.source);
    const sources::ShardRecord place = source.locate(sample.id.index);
    shards_.insert(place.shard.value);
    if (fetcher_.sources_.opener(order_.source).keeps_ids()) {
      const sources::SidecarIndex& index = *source.shards()[place.shard.value].index;
      BL_ASSIGN_OR_RETURN(const sources::RecordPayload payload, index.payload(place.record));
      borrow_stored(payload);
    } else if (place != last_) {
      BL_ASSIGN_OR_RETURN(const auto bad, read(place));
      if (bad) {
        last_ = {};
        bad_.push_back({sample.id, bad->message});
        return Status::ok();
      }
      last_ = place;
      borrow_record();
    }
    if (!bad_.empty()) return Status::ok();
    BL_ASSIGN_OR_RETURN(
        const construction::PartContent part,
        construction::cut_part(fetcher_.sources_.cut_rule(), content_, sample.id.part));
    return builder.add(sample, part);
  }

  Result<std::optional<sources::BadRecord>> read(const sources::ShardRecord& place) {
    if (reader_ == nullptr || place.shard != reader_shard_) {
      give_back();
      BL_ASSIGN_OR_RETURN(reader_, fetcher_.take_reader({order_.source, place.shard}, call_));
      reader_shard_ = place.shard;
    }
    return reader_->read(place.record, call_, record_);
  }

  void give_back() {
    if (reader_ == nullptr) return;
    fetcher_.give_back({order_.source, reader_shard_}, std::move(reader_));
  }

  /// What was taken from indexes is what shards still hold.
  Status check_shards() const {
    const sources::RecordSource& source = fetcher_.sources_.source(order_.source);
    for (const std::uint32_t shard : shards_) {
      const sources::IndexedShard& indexed = source.shards()[shard];
      BL_ASSIGN_OR_RETURN(const sources::FileStamp now, sources::stamp_of(indexed.path));
      BL_RETURN_IF_ERROR(sources::check_unchanged(indexed.path, indexed.stamp, now));
    }
    return Status::ok();
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

  void borrow_record() {
    content_.tokens = construction::TokenSpan(std::span<const std::uint32_t>(record_.ids));
    content_.mask.reset();
    if (record_.loss_mask.empty()) return;
    learned_ = construction::learned_intervals(record_.loss_mask);
    content_.mask = std::span<const construction::LearnedInterval>(learned_);
  }

  RecordFetcher& fetcher_;
  const FetchOrder& order_;
  const CallOptions& call_;
  std::set<std::uint32_t> shards_;
  std::unique_ptr<sources::ShardReader> reader_;
  model::ShardIndex reader_shard_;
  std::optional<sources::ShardRecord> last_;  // What record_ is, where it was read.
  sources::Record record_;
  std::vector<construction::LearnedInterval> learned_;
  construction::RecordContent content_;  // Borrows both, or an index.
  std::vector<BadSample> bad_;
};

RecordFetcher::RecordFetcher(const SourceSet& sources, sources::FilePool& pool, std::uint32_t vocab)
    : sources_(sources), pool_(pool), vocab_(vocab) {}
RecordFetcher::~RecordFetcher() = default;

Result<Fetched> RecordFetcher::fetch(const FetchOrder& order, const CallOptions& call) {
  return Order(*this, order, call).run();
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
