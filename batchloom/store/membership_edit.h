// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "batchloom/store/membership.h"
#include "batchloom/store/proposal.h"

namespace batchloom::store {

/// A session's change of membership, as an edit of the head (head_edit.h). Keys that are to stand
/// beside are stored before a head names them. One thread at a time.
class MembershipEdit {
 public:
  /// All of them outlive it. Precondition: the keys are not too large.
  MembershipEdit(const Stream& stream, const Session& session, const Membership& membership,
                 const CallOptions& call);

  /// The head after `head`, or nullopt where the keys are set already. Errors as of
  /// ProducerSession::set_membership().
  Result<std::optional<Head>> apply(const Head& head);

 private:
  Status check_session(const Head& head) const;
  Status upload_keys() const;

  const Stream& stream_;
  const Session& session_;
  const CallOptions& call_;
  Encoded object_;  ///< Empty where the keys stand inline.
  MembershipRow row_;
};

}  // namespace batchloom::store
