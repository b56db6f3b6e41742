// SPDX-License-Identifier: Apache-2.0
std::thread only_here;
