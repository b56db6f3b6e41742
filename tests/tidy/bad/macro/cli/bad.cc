// SPDX-License-Identifier: Apache-2.0
#define LIMIT 3
#undef LIMIT
