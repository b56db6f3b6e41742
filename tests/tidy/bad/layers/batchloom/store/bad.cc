// SPDX-License-Identifier: Apache-2.0
#include "batchloom/base/status.h"
#include "batchloom/planning/mixture.h"
#include "batchloom/simulator/world.h"
#include "batchloom/store/keys.h"
#include "cli/args.h"
