// SPDX-License-Identifier: Apache-2.0
#include "batchloom/sources/python_tokenizer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "batchloom/base/real_runtime.h"

namespace batchloom::sources {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Encoded = std::vector<EncodedText>;

/// A module `tok` with a function `f`, whose body each test writes.
class PythonTokenizerTest : public ::testing::Test {
 protected:
  PythonTokenizerTest()
      : folder_(std::filesystem::temp_directory_path() /
                fmt::format("python_tokenizer_test.{}", getpid())) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~PythonTokenizerTest() override { std::filesystem::remove_all(folder_); }

  void write_module(const std::string& text) const { std::ofstream(folder_ / "tok.py") << text; }
  std::unique_ptr<Tokenizer> tokenizer(PythonOptions options = {}) const {
    return make_python_tokenizer({.vocab = 1000},
                                 {.name = "tok:f", .folder = folder_.string(), .digest = 0},
                                 std::move(options))
        .value();
  }
  Result<Encoded> encode(const std::string& module, const std::vector<std::string>& texts,
                         PythonOptions options = {}) const {
    write_module(module);
    const auto made = tokenizer(std::move(options));
    return made->batches()->encode_batch(batch_of(texts), {});
  }
  static TextBatch batch_of(const std::vector<std::string>& texts) {
    TextBatch batch{.shard = "a.jsonl"};
    for (std::size_t i = 0; i < texts.size(); ++i) {
      batch.entries.push_back({.record = 10 + i, .texts = {.text = texts[i]}});
    }
    return batch;
  }
  /// Of a function with `body`, on two texts.
  std::string failure(const std::string& body, PythonOptions options = {}) const {
    return encode("def f(texts):\n    " + body + "\n", {"ab", "c"}, std::move(options))
        .status()
        .to_string();
  }

  const std::filesystem::path folder_;
};

constexpr const char* kBytesModule =
    "def f(texts):\n    return [list(t.encode()) for t in texts]\n";

TEST_F(PythonTokenizerTest, GivesIdsOfEachText) {
  const auto encoded = encode(kBytesModule, {"ab", "", "\u00e4"});
  ASSERT_TRUE(encoded.is_ok()) << encoded.status().to_string();
  ASSERT_EQ(encoded->size(), 3u);
  EXPECT_THAT((*encoded)[0].ids, ElementsAre('a', 'b'));
  EXPECT_THAT((*encoded)[1].ids, ElementsAre());
  EXPECT_THAT((*encoded)[2].ids, ElementsAre(0xc3, 0xa4));
  EXPECT_FALSE((*encoded)[0].mask.has_value());
}

TEST_F(PythonTokenizerTest, GivesIdsAndMasksOfPromptsAndAnswers) {
  write_module(
      "def f(chats):\n"
      "    return [([len(c['prompt']), len(c['answer'])], [0, True]) for c in chats]\n");
  TextBatch batch{.shard = "a.jsonl", .has_answers = true};
  batch.entries.push_back({.record = 0, .texts = {.text = "abc", .answer = "d"}});
  const auto encoded = tokenizer()->batches()->encode_batch(batch, {});
  ASSERT_TRUE(encoded.is_ok()) << encoded.status().to_string();
  EXPECT_THAT(encoded->at(0).ids, ElementsAre(3, 1));
  EXPECT_THAT(encoded->at(0).mask.value(), ElementsAre(0, 1));
}

TEST_F(PythonTokenizerTest, TakesArraysAndTuples) {
  const auto encoded = encode(
      "from array import array\n"
      "def f(texts):\n    return array('i', [1, 2]), (3, 4)\n",
      {"a", "b"});
  ASSERT_TRUE(encoded.is_ok()) << encoded.status().to_string();
  EXPECT_THAT(encoded->at(0).ids, ElementsAre(1, 2));
  EXPECT_THAT(encoded->at(1).ids, ElementsAre(3, 4)) << "two ids, and not ids and a mask";
}

TEST_F(PythonTokenizerTest, WhatItPrintsAndReadsIsNotInTheChannel) {
  const auto encoded = encode(
      "import os, sys\n"
      "print('at import')\n"
      "def f(texts):\n"
      "    print('printed', flush=True); os.write(1, b'written'); os.system('echo of a shell')\n"
      "    return [[len(sys.stdin.read())] for t in texts]\n",
      {"a", "b"});
  ASSERT_TRUE(encoded.is_ok()) << encoded.status().to_string();
  EXPECT_THAT(encoded->at(1).ids, ElementsAre(0));
}

TEST_F(PythonTokenizerTest, ARecordThatRaisesIsABadOneWhateverItsBatch) {
  const std::string module =
      "def f(texts):\n"
      "    if 'bad' in texts: raise ValueError('no such\\nword')\n"
      "    return [[len(t)] for t in texts]\n";
  for (const auto& texts : {std::vector<std::string>{"abc", "bad", "d"}, {"bad"}}) {
    const auto encoded = encode(module, texts);
    ASSERT_TRUE(encoded.is_ok()) << encoded.status().to_string();
    for (std::size_t i = 0; i < texts.size(); ++i) {
      ASSERT_EQ(encoded->at(i).fault.has_value(), texts[i] == "bad");
      if (texts[i] != "bad") continue;
      EXPECT_EQ(encoded->at(i).fault->reason, BadRecordReason::kTokenizer);
      EXPECT_EQ(encoded->at(i).fault->what, "raises ValueError: no such\nword");
    }
  }
}

TEST_F(PythonTokenizerTest, IdsOutsideOfTheVocabularyMakeBadRecords) {
  const auto encoded =
      encode("def f(texts):\n    return [[1, 1000], [-1], [2**31], [-2**70], [999]]\n",
             {"a", "b", "c", "d", "e"});
  ASSERT_TRUE(encoded.is_ok()) << encoded.status().to_string();
  const std::vector<std::string> told = {"token 1: id 1000 is", "token 0: id -1 is",
                                         "token 0: id 2147483648 is",
                                         "token 0: id -1180591620717411303424 is"};
  for (std::size_t i = 0; i < told.size(); ++i) {
    ASSERT_TRUE(encoded->at(i).fault.has_value());
    EXPECT_EQ(encoded->at(i).fault->reason, BadRecordReason::kTokenId);
    EXPECT_EQ(encoded->at(i).fault->what, told[i] + " outside of the vocabulary of 1000 ids");
  }
  EXPECT_FALSE(encoded->at(4).fault.has_value());
}

TEST_F(PythonTokenizerTest, WhatAFunctionMustNotReturnIsNamed) {
  const std::string records = "invalid: tokenizer tok:f: a.jsonl: records 10 to 11: ";
  EXPECT_EQ(failure("return [[1]]"), records + "it returns a list of 1 for 2 records");
  EXPECT_EQ(failure("return [[1]] * 3"), records + "it returns a list of 3 for 2 records");
  EXPECT_EQ(failure("pass"),
            records + "it returns NoneType; expected a list with the ids of each of 2 records");
  EXPECT_THAT(failure("return {'input_ids': [[1], [2]]}"), HasSubstr("it returns dict; expected"));
  const std::string second = "invalid: tokenizer tok:f: a.jsonl: record 11: ";
  EXPECT_EQ(failure("return [[1], None]"), second + "it returns NoneType; expected a list of ids");
  EXPECT_EQ(failure("return [[1], 'ids']"), second + "it returns str; expected a list of ids");
  EXPECT_THAT(failure("return [[1], [1.5]]"),
              StartsWith(second + "it returns ids that are no integers: "));
  EXPECT_THAT(failure("return [[1], [[1]]]"), StartsWith(second + "it returns ids that are no"));
  EXPECT_EQ(failure("return [[1], ([1, 2], [1])]"), second + "it returns 2 ids and a mask of 1");
  EXPECT_EQ(failure("return [[1], ([1, 2], [1, 2])]"), second + "its mask has other than 0 and 1");
  EXPECT_THAT(failure("return [[1], ([1, 2], [1, -1])]"),
              StartsWith(second + "its mask has other than 0 and 1: "));
  EXPECT_EQ(failure("return [[1], ([1, 2], None)]"),
            second + "its mask is NoneType; expected a list of 0 and 1");
}

TEST_F(PythonTokenizerTest, WhatIsNoFunctionIsNamed) {
  const auto status = [&](const std::string& module) {
    return encode(module, {"a"}).status().to_string();
  };
  const std::string named = "invalid: tokenizer tok:f: a.jsonl: ";
  EXPECT_EQ(status("import no_such_module\n"),
            named + "cannot import tok: ModuleNotFoundError: No module named 'no_such_module'");
  EXPECT_THAT(status("def f(:\n"), StartsWith(named + "cannot import tok: SyntaxError: "));
  EXPECT_THAT(status("1 / 0\n"), StartsWith(named + "cannot import tok: ZeroDivisionError: "));
  EXPECT_THAT(status("g = 1\n"), AllOf(StartsWith(named + "module tok ("), HasSubstr("has no f")));
  EXPECT_EQ(status("f = 1\n"), named + "f is no function but int");
}

TEST_F(PythonTokenizerTest, WhatIsNotInTheRecordsMakesNoneOfThemBad) {
  EXPECT_EQ(failure("open('/gone')"),
            "unavailable: tokenizer tok:f: a.jsonl: records 10 to 11: FileNotFoundError: [Errno 2] "
            "No such file or directory: '/gone'");
  EXPECT_EQ(failure("raise MemoryError"),
            "exhausted: tokenizer tok:f: a.jsonl: records 10 to 11: MemoryError");
  EXPECT_EQ(failure("import no_such_module"),
            "invalid: tokenizer tok:f: a.jsonl: records 10 to 11: ModuleNotFoundError: No module "
            "named 'no_such_module'");
  EXPECT_THAT(failure("if len(texts) > 1: raise ValueError\n    raise TimeoutError('slow')"),
              HasSubstr("record 10: TimeoutError: slow"));
}

TEST_F(PythonTokenizerTest, AWorkerThatEndsIsNamedWithWhatItPrinted) {
  const std::string named =
      "unavailable: tokenizer tok:f: a.jsonl: records 10 to 11: its process: it ";
  EXPECT_EQ(failure("import sys; sys.exit(3)"), named + "ended with status 3");
  EXPECT_EQ(failure("import os; print('last words'); os._exit(0)"),
            named + "ended with status 0; the last lines that it printed:\nlast words");
  EXPECT_EQ(failure("import os; os.kill(os.getpid(), 9)"), named + "was killed by SIGKILL");
  EXPECT_EQ(failure("import os; os.kill(os.getpid(), 15)"), named + "was killed by SIGTERM");
  EXPECT_THAT(encode("import os; os._exit(4)\n", {"a"}).status().to_string(),
              HasSubstr("a.jsonl: its process: it ended with status 4"));
}

TEST_F(PythonTokenizerTest, AWorkerThatHangsEndsByTheTimeForABatchAndByTheStop) {
  EXPECT_THAT(failure("import time; time.sleep(600)", {.max_time = std::chrono::milliseconds(300)}),
              AllOf(StartsWith("unavailable: tokenizer tok:f: a.jsonl: "),
                    HasSubstr("its process: no answer within 0.3 s: does the function hang?"),
                    testing::Not(HasSubstr("gives it more time"))));
  EXPECT_THAT(failure("import time; time.sleep(600)",
                      {.max_time = std::chrono::milliseconds(20), .max_time_option = "--patience"}),
              HasSubstr("does the function hang? --patience gives it more time"));
  write_module(
      "import time\n"
      "def f(texts):\n"
      "    if texts == ['hang']: time.sleep(600)\n"
      "    return [[1] for t in texts]\n");
  const auto awake = tokenizer();
  ASSERT_TRUE(awake->batches()->encode_batch(batch_of({"a"}), {}).is_ok());
  const Time soon = make_real_runtime()->now() + std::chrono::milliseconds(50);
  EXPECT_EQ(
      awake->batches()->encode_batch(batch_of({"hang"}), {.deadline = soon}).status().to_string(),
      "unavailable: tokenizer tok:f: a.jsonl: record 10: its process: the deadline passed");
  write_module("import time\ntime.sleep(600)\n");
  std::stop_source stop;
  stop.request_stop();
  const auto stopped = tokenizer()->batches()->encode_batch(
      batch_of({"a"}), {.deadline = kNever, .stop = stop.get_token()});
  EXPECT_TRUE(stopped.is(ErrorKind::kCancelled)) << stopped.status().to_string();
}

TEST_F(PythonTokenizerTest, AfterAFailureAnotherWorkerGoesOn) {
  write_module(
      "def f(texts):\n"
      "    if texts == ['end']: raise SystemExit(1)\n"
      "    return [[1] for t in texts]\n");
  const auto made = tokenizer();
  ASSERT_TRUE(made->batches()->start(2).is_ok());
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(made->batches()->encode_batch(batch_of({"end"}), {}).is_ok());
    EXPECT_TRUE(made->batches()->encode_batch(batch_of({"a"}), {}).is_ok());
  }
  made->batches()->stop();
  EXPECT_TRUE(made->batches()->encode_batch(batch_of({"a"}), {}).is_ok());
}

TEST_F(PythonTokenizerTest, APythonThatIsNotThereIsNamed) {
  EXPECT_EQ(failure("pass", {.python = "/gone/python"}),
            "invalid: tokenizer tok:f: it runs in Python: /gone/python: cannot run it: No such "
            "file or directory; BATCHLOOM_PYTHON names another");
  EXPECT_THAT(failure("pass", {.python = "/bin/false"}), HasSubstr("it ended with status 1"));
}

TEST(PythonFunctionName, IsAModuleAndAFunction) {
  for (const char* name : {"m:f", "a.b_2:C.method", "_:_", "m\u00e4:f"}) {
    EXPECT_TRUE(check_function_name(name).is_ok()) << name;
  }
  for (const char* name :
       {"", "m", ":f", "m:", "m:f:g", "a..b:f", ".m:f", "1m:f", "m/n:f", "m f:g"}) {
    EXPECT_THAT(check_function_name(name).to_string(), HasSubstr("names no function of Python"))
        << name;
  }
}

}  // namespace
}  // namespace batchloom::sources
