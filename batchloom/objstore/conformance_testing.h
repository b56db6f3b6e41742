// SPDX-License-Identifier: Apache-2.0
// The conformance suite: what every ObjectStore must do, as GoogleTest cases and as plain
// functions.
//
//   INSTANTIATE_TEST_SUITE_P(Memory, StoreConformance,
//                            testing::ValuesIn(conformance_cases(memory_backend)),
//                            conformance_name);
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "batchloom/base/runtime.h"
#include "batchloom/objstore/check_run.h"

namespace batchloom::objstore {

/// One empty store under test, with what it stands on; cleans up when destroyed.
class TestBackend {
 public:
  virtual ~TestBackend() = default;
  virtual ObjectStore& store() = 0;
  /// Called in a child made by fork: the same bucket, opened anew. Null where processes cannot
  /// share it.
  virtual std::unique_ptr<ObjectStore> open_in_child(Runtime& /*runtime*/) { return nullptr; }
};

/// How to make a backend, and how far the suite goes with it.
struct BackendFactory {
  std::function<std::unique_ptr<TestBackend>(Runtime&)> make;  ///< Null after a failure.
  bool shared_by_processes = false;  ///< open_in_child works: creators also race as processes.
  std::size_t page_keys = 1000;  ///< Keys in a page of its listings; some checks put twice that.
};

/// What a check works with.
struct ConformanceFixture {
  CheckRun& run;
  TestBackend& backend;
  const BackendFactory& factory;
};

struct ConformanceCheck {
  std::string name;
  std::function<void(ConformanceFixture&)> run;
};

/// All checks that apply to backends of this factory: those of the probe, then the suite's own.
std::vector<ConformanceCheck> conformance_checks(const BackendFactory& factory);

/// Runs one check on a fresh backend: nullopt, or what is wrong.
std::optional<std::string> run_conformance_check(const BackendFactory& factory,
                                                 const ConformanceCheck& check);

/// A GoogleTest parameter: one check on one backend.
struct ConformanceCase {
  BackendFactory factory;
  ConformanceCheck check;
};
std::vector<ConformanceCase> conformance_cases(const BackendFactory& factory);
std::string conformance_name(const testing::TestParamInfo<ConformanceCase>& info);
void PrintTo(const ConformanceCase& value, std::ostream* out);

class StoreConformance : public testing::TestWithParam<ConformanceCase> {};

}  // namespace batchloom::objstore
