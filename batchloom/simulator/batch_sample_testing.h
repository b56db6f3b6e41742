// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "batchloom/simulator/batch_sources.h"
#include "batchloom/store/run.h"

namespace batchloom::simulator {

/// The stream of all sample objects, and the term of their sessions.
inline constexpr store::StreamUuid kSampleStream{.bytes = {std::byte{7}}};
inline constexpr store::Term kSampleTerm(2);

/// p0: 2 steps an object. p1: 3 steps, with a long sample.
BatchSources sample_sources();

/// An object as it is uploaded, and the entry that a commit makes of it, as step 0 and on.
struct SampleObject {
  store::Entry entry;
  Bytes bytes;
};

/// Which object, for how many ranks.
struct SampleName {
  std::string producer;
  std::uint64_t seq = 0;
  std::uint32_t ranks = 2;
};

SampleObject make_sample(const BatchSources& sources, const SampleName& name,
                         const std::function<void(SyntheticBatches::Object&)>& spoil = nullptr);

/// One rank's run of one of its steps.
store::Run read_sample(const SampleObject& sample, std::uint32_t position, model::HdpRank rank);

}  // namespace batchloom::simulator
