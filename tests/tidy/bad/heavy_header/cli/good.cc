// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
