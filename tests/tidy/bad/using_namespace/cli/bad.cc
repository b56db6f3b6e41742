// SPDX-License-Identifier: Apache-2.0
using namespace std;
using std::string;
namespace fs = std::filesystem;
