// SPDX-License-Identifier: Apache-2.0
// Pipelines for tests: made-up records, fetched as tests say.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "batchloom/construction/corpus_testing.h"
#include "batchloom/control/pipeline_run.h"

namespace batchloom::control {

/// Fetches from a corpus. Records of which a test says so are bad.
class CorpusFetcher final : public SampleFetcher {
 public:
  /// Asked before each order.
  using Before = std::function<Status(const FetchOrder&, const CallOptions&)>;

  explicit CorpusFetcher(const construction::Corpus& corpus) : corpus_(corpus) {}

  Result<Fetched> fetch(const FetchOrder& order, FetchPlace& place,
                        const CallOptions& call) override;

  std::set<RecordName> bad;
  Before before;

 private:
  const construction::Corpus& corpus_;
};

/// All batches of a stream, in order.
std::vector<store::Entry> entries_of(const store::Stream& stream);

/// What a stream holds: a line for each step, of all that ranks get of it.
std::vector<std::string> content_of(const store::Stream& stream);

}  // namespace batchloom::control
