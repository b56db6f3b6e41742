// SPDX-License-Identifier: Apache-2.0
#include "batchloom/store/list_keys.h"

#include <vector>

namespace batchloom::store {

Status for_each_key(const Stream& stream, std::string_view prefix, const CallOptions& call,
                    const std::function<void(const std::string&)>& visit) {
  BL_ASSIGN_OR_RETURN(const auto listing, stream.objects().list(prefix, "", call));
  for (;;) {
    BL_ASSIGN_OR_RETURN(const std::vector<objstore::ListedObject> page, listing->next_page(call));
    if (page.empty()) return Status::ok();
    for (const objstore::ListedObject& object : page) visit(object.key);
  }
}

}  // namespace batchloom::store
