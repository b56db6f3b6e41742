// SPDX-License-Identifier: Apache-2.0
/* std::mutex, in a
   block of std::thread */
auto text = "std::mutex and rand()";
auto raw = R"(std::thread
std::thread)";
auto big = 1'000'000 + runtime.time(0) + operand(1'000);
auto quote = '"';
auto stop = std::stop_token();
auto wait = runtime.sleep_until(call);
