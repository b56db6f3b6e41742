// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <CLI/CLI.hpp>
#include <string>
// #include <torch/torch.h>
#include "batchloom/store/manifest_generated.h"
