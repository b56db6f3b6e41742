// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "batchloom/base/status.h"
#include "batchloom/construction/step_builder.h"
#include "batchloom/store/batch_upload.h"

namespace batchloom::construction {

/// One batch object to be made: a step, or a pack of them. Immutable once handed in.
struct ConstructionJob {
  store::Seq seq;
  std::vector<StepInput> steps;
  Bytes state_after;  ///< The producer's, opaque: what a successor continues from.

  /// What it takes in memory.
  std::uint64_t size_bytes() const;
};

/// Builds and uploads batch objects, one at a time. The seam at which a constructor may be another
/// process: whoever implements it must give the same bytes for the same job.
class Constructor {
 public:
  virtual ~Constructor() = default;

  /// For messages.
  virtual const std::string& name() const = 0;

  /// The uploaded object, with the job's state. Blocks for the store. Any number of attempts at one
  /// job may be made, by any constructors: attempts that are not committed are orphans, which
  /// reclaimers delete. `unavailable`, `conflict` and `unknown_outcome`: another attempt may
  /// succeed. `cancelled` without a stop by `call`: this constructor is gone. Others: the job
  /// cannot be done.
  virtual Result<store::PendingBatch> construct(const ConstructionJob& job,
                                                const CallOptions& call) = 0;
};

/// What all objects of a stream say of themselves.
struct ObjectOptions {
  std::uint32_t vocab = 0;
  store::BatchOrigin origin;
};

/// In the process of its stream. Several may share a stream; each one thread at a time.
class StreamConstructor final : public Constructor {
 public:
  /// `stream` outlives it. `session` is the producer's that will commit what is built here.
  StreamConstructor(std::string name, const store::Stream& stream, store::Session session,
                    std::shared_ptr<const ObjectOptions> options);

  const std::string& name() const override { return name_; }

  /// Errors: as build_steps() and store::upload_batch().
  Result<store::PendingBatch> construct(const ConstructionJob& job,
                                        const CallOptions& call) override;

 private:
  const std::string name_;
  const store::Stream& stream_;
  const store::Session session_;
  const std::shared_ptr<const ObjectOptions> options_;
};

}  // namespace batchloom::construction
