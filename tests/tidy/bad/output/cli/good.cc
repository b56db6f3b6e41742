// SPDX-License-Identifier: Apache-2.0
void show() {
  std::cout << 1;
}
