// SPDX-License-Identifier: Apache-2.0
// What a batch object holds, found out from its bytes: for the rules of a StoreHistory.
#pragma once

#include <memory>
#include <string>

#include "batchloom/base/bytes.h"
#include "batchloom/simulator/batch_sources.h"

namespace batchloom::simulator {

/// The records of a simulated batch object: [from, to) of its producer's source.
struct BatchBody {
  std::string producer;
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  friend bool operator==(const BatchBody&, const BatchBody&) = default;
};

using SharedBytes = std::shared_ptr<const Bytes>;

/// Reads whole batch objects.
class BatchInspector {
 public:
  virtual ~BatchInspector() = default;

  /// `object` are the stored bytes of `entry`. An error says why they are not what the entry means.
  virtual Result<BatchBody> inspect(const store::StreamUuid& stream, const store::Entry& entry,
                                    const SharedBytes& object) const = 0;
};

/// Reads real ones. Every rank's run of every step must be there, whole, and be what the rank must
/// get; together the ranks of a step must hold each token of each sample once, and the steps each
/// record of a stretch of the source once. Shares only the codecs of runs with the product.
class RunInspector final : public BatchInspector {
 public:
  /// `sources` outlive it.
  explicit RunInspector(const BatchSources& sources) : sources_(sources) {}

  Result<BatchBody> inspect(const store::StreamUuid& stream, const store::Entry& entry,
                            const SharedBytes& object) const override;

 private:
  const BatchSources& sources_;
};

}  // namespace batchloom::simulator
