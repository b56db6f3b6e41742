// SPDX-License-Identifier: Apache-2.0
#include "batchloom/objstore/fault_driver_testing.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace batchloom::objstore {

std::vector<NamedFault> faults_that_happen_once() {
  return {{.name = "DiskFull", .fault = {.error = ENOSPC}},
          {.name = "NoPermission", .fault = {.error = EACCES}},
          {.name = "IoError", .fault = {.error = EIO}},
          {.name = "IoErrorWithEffect", .fault = {.error = EIO, .takes_effect = true}},
          {.name = "PowerOff", .fault = {.error = EIO, .power_off = true}},
          {.name = "PowerOffWithEffect",
           .fault = {.error = EIO, .takes_effect = true, .power_off = true}}};
}

std::vector<NamedFault> faults_that_last() {
  using enum FileCall;
  // What takes space, or may; what changes a folder; what a broken device cannot do.
  const std::vector<FileCall> space = {kOpenTemp, kWrite, kSyncData, kLink, kReplace, kMakeFolder};
  const std::vector<FileCall> folders = {kOpenTemp, kLink, kReplace, kUnlink, kMakeFolder};
  const std::vector<FileCall> writes = {kOpenTemp, kWrite,  kSyncData,   kLink,
                                        kReplace,  kUnlink, kSyncFolder, kMakeFolder};
  std::vector<FileCall> all;
  for (std::size_t i = 0; i < kFileCalls; ++i) all.push_back(static_cast<FileCall>(i));
  return {{.name = "StaysFull", .fault = {.error = ENOSPC}, .lasts_for = space},
          {.name = "StaysForbidden", .fault = {.error = EACCES}, .lasts_for = folders},
          {.name = "WritesNoMore", .fault = {.error = EIO}, .lasts_for = writes},
          {.name = "StaysBroken", .fault = {.error = EIO}, .lasts_for = all}};
}

void FaultRun::arm(FileFaults& faults) const {
  if (fault.lasts()) {
    faults.fail_from(index, fault.lasts_for, fault.fault);
  } else {
    faults.fail_call(index, fault.fault);
  }
}

std::uint64_t at_every_call(const NamedFault& fault, std::uint64_t cuts_per_call,
                            const std::function<bool(const FaultRun&)>& run) {
  std::uint64_t index = 0;
  for (bool met = true; met && !testing::Test::HasFailure(); index += fault_stride()) {
    SCOPED_TRACE(testing::Message() << fault.name << " at call " << index);
    for (std::uint64_t cut = 0; cut < cuts_per_call; ++cut) {
      SCOPED_TRACE(testing::Message() << "cut " << cut);
      met = run({.fault = fault, .index = index, .power_cut_seed = index * cuts_per_call + cut});
    }
    if (fault.fault.power_off) continue;
    SCOPED_TRACE("killed");
    met = run({.fault = fault, .index = index});
  }
  return index;
}

}  // namespace batchloom::objstore
