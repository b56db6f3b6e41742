// SPDX-License-Identifier: Apache-2.0
void show() {
  std::cout << 1;
  std::printf("2");
  fmt::print("3");
  std::snprintf(buffer, size, "4");
}
