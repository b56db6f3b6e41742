// SPDX-License-Identifier: Apache-2.0
#include "args.h"

#include <batchloom/base/status.h>
#include <string>

#include "../cli/args.h"
#include "cli/args.h"
