#include <string>
#include <thread>
#include <vector>

#include "common/base/source_location.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

TEST(InternTest, EqualTextsShareOneCopy) {
  const char* kept = nullptr;
  {
    std::string name = "my_mlp";
    kept = Intern(name);
    name.assign(1000, 'x');
  }
  EXPECT_STREQ(kept, "my_mlp");
  EXPECT_EQ(kept, Intern("my_mlp"));
  EXPECT_NE(kept, Intern("my_mlp2"));
  EXPECT_STREQ(Intern(""), "");
}

TEST(InternTest, ThreadsGetTheSamePointers) {
  constexpr int kTexts = 1000;
  std::vector<std::vector<const char*>> found(4);
  std::vector<std::thread> threads;
  for (auto& of_thread : found) {
    threads.emplace_back([&of_thread] {
      for (int i = 0; i < kTexts; ++i) {
        of_thread.push_back(Intern("layer." + std::to_string(i)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& of_thread : found) EXPECT_EQ(of_thread, found[0]);
  for (int i = 0; i < kTexts; ++i) {
    EXPECT_EQ(found[0][i], "layer." + std::to_string(i));
  }
}

}  // namespace
}  // namespace d2l
