// SPDX-License-Identifier: Apache-2.0
// The settings that a stream was made by, beside those of the pipeline that would go on with it.
#pragma once

#include <optional>

#include "batchloom/control/membership.h"
#include "batchloom/store/producer_session.h"
#include "batchloom/store/stream.h"

namespace batchloom::control {

/// What a stream remembers, compared. A value.
class StreamSettings {
 public:
  /// Looks without fencing anybody. `invalid`: other settings, with the differences, unless
  /// `change_from` is the stream's next step; a change from another step. Else errors of the store.
  static Result<StreamSettings> compare(const store::Stream& stream, const Membership& membership,
                                        std::optional<store::Step> change_from,
                                        const CallOptions& call);

  /// The pipeline's settings are not those of the last step.
  bool changed() const { return changed_; }
  store::Step next_step() const { return next_step_; }

  /// Has the stream remember the pipeline's, where it does not yet.
  Status put(store::ProducerSession& session, const CallOptions& call) const;

 private:
  StreamSettings() = default;

  Membership membership_;
  store::Step next_step_;
  bool changed_ = false;
  bool remembered_ = false;
};

}  // namespace batchloom::control
