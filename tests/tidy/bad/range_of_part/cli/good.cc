// SPDX-License-Identifier: Apache-2.0
void f() {
  for (const int part : load(1).value()) use(load(part)->size);
  for (const int part : loaded->parts) use(part);
  for (const std::string& part : load(1).parts) use(part);
  for (int i = 0; i < load(1)->size; ++i) use(i ? load(i)->x : 0);
}
