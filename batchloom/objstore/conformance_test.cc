// SPDX-License-Identifier: Apache-2.0
// The conformance suite on the stores that need nothing outside this process.
#include <gtest/gtest.h>

#include "batchloom/objstore/conformance_testing.h"
#include "batchloom/objstore/faulty_store.h"
#include "batchloom/objstore/memory_store.h"
#include "batchloom/objstore/metered_store.h"
#include "batchloom/objstore/retrying_store.h"

namespace batchloom::objstore {
namespace {

constexpr std::size_t kPageKeys = 50;

class MemoryBackend final : public TestBackend {
 public:
  explicit MemoryBackend(Runtime& runtime) : store_(runtime, {.page_size = kPageKeys}) {}
  ObjectStore& store() override { return store_; }

 private:
  MemoryStore store_;
};

/// Reads, listings and removals fail often, and a RetryingStore has to make up for it.
FaultPlan faults_that_retries_mend() {
  FaultSettings settings{.seed = 1};
  for (const Operation operation :
       {Operation::kGet, Operation::kHead, Operation::kList, Operation::kRemove}) {
    for (const Fault fault :
         {Fault::kLostRequest, Fault::kLostReply, Fault::kThrottled429, Fault::kServerError503}) {
      settings.rates.push_back({fault, operation, 0.05});
    }
  }
  settings.rates.push_back({Fault::kShortBody, Operation::kGet, 0.1});
  settings.rates.push_back({Fault::kErrorInsideOk, Operation::kRemove, 0.1});
  return FaultPlan::make(settings).value();
}

class MendedBackend final : public TestBackend {
 public:
  explicit MendedBackend(Runtime& runtime)
      : memory_(runtime, {.page_size = kPageKeys}),
        faulty_(memory_, runtime, faults_that_retries_mend()),
        metered_(faulty_, counters_),
        retrying_(metered_, runtime, counters_,
                  {.first_backoff = std::chrono::microseconds(10),
                   .max_backoff = std::chrono::milliseconds(1),
                   .max_attempts = 20,
                   .retry_burst = 1'000'000}) {}
  ObjectStore& store() override { return retrying_; }

 private:
  Counters counters_;
  MemoryStore memory_;
  FaultyStore faulty_;
  MeteredStore metered_;
  RetryingStore retrying_;
};

template <class Backend>
BackendFactory factory() {
  return {.make = [](Runtime& runtime) { return std::make_unique<Backend>(runtime); },
          .shared_by_processes = false,
          .page_keys = kPageKeys};
}

INSTANTIATE_TEST_SUITE_P(Memory, StoreConformance,
                         testing::ValuesIn(conformance_cases(factory<MemoryBackend>())),
                         conformance_name);
INSTANTIATE_TEST_SUITE_P(Mended, StoreConformance,
                         testing::ValuesIn(conformance_cases(factory<MendedBackend>())),
                         conformance_name);

}  // namespace
}  // namespace batchloom::objstore
