// SPDX-License-Identifier: Apache-2.0
#include "batchloom/objstore/operation.h"

#include "batchloom/base/check.h"

namespace batchloom::objstore {

std::string_view to_string(Operation operation) {
  switch (operation) {
    case Operation::kGet: return "get";
    case Operation::kHead: return "head";
    case Operation::kPut: return "put";
    case Operation::kList: return "list";
    case Operation::kRemove: return "remove";
  }
  BL_CHECK(false, "not an operation");
}

}  // namespace batchloom::objstore
