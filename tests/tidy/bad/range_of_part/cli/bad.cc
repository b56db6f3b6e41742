// SPDX-License-Identifier: Apache-2.0
void f() {
  for (const int part : load(1).value()->parts) use(part);
  for (const auto& [a_key_of_the_map, a_value_of_the_map] :
       a_function_that_returns_a_result(1, 2, 3)->parts.at(0)) {
    use(a_key_of_the_map);
  }
}
