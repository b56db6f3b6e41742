// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "batchloom/base/runtime.h"
#include "batchloom/base/status.h"
#include "batchloom/control/pipeline_config.h"
#include "batchloom/simulator/step_lengths.h"
#include "cli/args.h"

namespace batchloom::cli {

/// Which steps are asked for; what is absent is as the lengths have it by themselves.
struct StepsWanted {
  std::optional<std::uint32_t> context_tokens = {};
  std::optional<std::uint64_t> step_tokens = {};
  std::optional<std::uint64_t> seed = {};
  std::uint64_t steps = 1;
};

/// What --lengths names, opened once: a distribution, the lengths of files, or a pipeline.
class LengthsInput {
 public:
  /// A pipeline where the name ends in .toml; else, where no distribution has the name, the files
  /// that it matches, one behind the other. `runtime` must outlive the result. Errors: those of
  /// read_lengths(), files_matching() and read_pipeline(); where there is no file either, the
  /// message lists the distributions.
  static Result<LengthsInput> open(const LengthsArgs& args, Runtime& runtime);

  const std::string& name() const { return name_; }
  bool is_file() const { return kind_ == Kind::kFile; }
  /// Of files, as they stand there.
  const std::vector<std::uint32_t>& lengths() const { return lengths_; }

  /// What `wanted` leaves open, filled in. A pipeline that counts samples has no step_tokens.
  StepsWanted resolved(StepsWanted wanted) const;
  /// "32M tokens", or "64 samples" where a pipeline counts them.
  std::string step_text(const StepsWanted& wanted) const;

  /// Of files: those above the context, which are left out.
  std::uint64_t too_long(std::uint32_t context_tokens) const;
  /// Of a pipeline there may be fewer steps than wanted: where its sources end. It is indexed where
  /// it was not. Errors: those of simulator::lengths_of_steps(), and of PreparedSources::open().
  Result<simulator::LengthsByStep> draw(const StepsWanted& wanted) const;

 private:
  enum class Kind : std::uint8_t { kDistribution, kFile, kPipeline };

  LengthsInput(Kind kind, std::string name, Runtime& runtime)
      : kind_(kind), name_(std::move(name)), runtime_(&runtime) {}

  Result<simulator::LengthsByStep> draw_pipeline(const StepsWanted& wanted) const;

  Kind kind_;
  std::string name_;
  Runtime* runtime_;
  std::vector<std::uint32_t> lengths_;
  control::PipelineConfig pipeline_;
  std::string index_folder_;  ///< Of a pipeline's indexes.
};

}  // namespace batchloom::cli
