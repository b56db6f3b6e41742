// SPDX-License-Identifier: Apache-2.0
// The loops of all tests that try a fault at every call of a workload.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "batchloom/objstore/file_faults_testing.h"

namespace batchloom::objstore {

/// A fault that tests try everywhere.
struct NamedFault {
  std::string name;
  FileFault fault = {};
  /// From its first call on, every call of these kinds meets it, until it is cleared. None: it
  /// happens once.
  std::vector<FileCall> lasts_for = {};

  bool lasts() const { return !lasts_for.empty(); }
};

/// Full disk, missing permission, errors of the device with and without effect, power off: once.
std::vector<NamedFault> faults_that_happen_once();
/// A disk that stays full, a permission that stays missing, a device that writes nothing any more,
/// and one that does nothing at all any more.
std::vector<NamedFault> faults_that_last();

/// One run of a workload.
struct FaultRun {
  NamedFault fault;
  std::uint64_t index = 0;                           ///< The call that meets it first.
  std::optional<std::uint64_t> power_cut_seed = {};  ///< None: the process is killed instead.

  /// Makes it happen, counting from the next call on.
  void arm(FileFaults& faults) const;
};

/// Runs the workload with the fault at each of its calls (or every fault_stride()th): as often with
/// power cuts as said, and, unless the fault is a loss of power, once where the process alone is
/// killed. `run` makes one run and says whether the fault came; where it did not, the workload has
/// no more calls. Ends early where a test has failed. Returns how many calls were tried.
std::uint64_t at_every_call(const NamedFault& fault, std::uint64_t cuts_per_call,
                            const std::function<bool(const FaultRun&)>& run);

}  // namespace batchloom::objstore
