// SPDX-License-Identifier: Apache-2.0
// Every line below has one banned name; std::thread in a comment is none.
std::thread a;
std::jthread b;
std::this_thread::sleep_for(c);
std::condition_variable d;
std::mutex e;
std::lock_guard f(e);
std::scoped_lock g(e);
auto h = std::chrono::steady_clock::now();
auto i = std::time(nullptr);
std::random_device j;
std::mt19937_64 k;
std::uniform_int_distribution<int> l;
auto m = rand();
std::shuffle(first, last, k);
std::async(n);
std::unordered_map<int, int> o;
std::promise<void> p;
usleep(1);
