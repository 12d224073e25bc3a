#include "common/profiler/json_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

namespace d2l {
namespace {

using nlohmann::json;

std::string Written(const std::string& text) {
  std::string out;
  AppendJsonString(text, &out);
  return out;
}

bool IsUtf8(const std::string& text) {
  try {
    static_cast<void>(json(text).dump());
    return true;
  } catch (const json::type_error&) {
    return false;
  }
}

TEST(AppendJsonString, EscapesWhatMustBe) {
  EXPECT_EQ(Written(""), "\"\"");
  EXPECT_EQ(Written("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(Written(std::string("\0\n\x1f\x7f", 4)),
            R"("\u0000\u000a\u001f\u007f")");
  EXPECT_EQ(Written("</script>"), R"("\u003c/script>")");
  EXPECT_EQ(Written("\xc3\xa9\xe8\xae\xa1\xf0\x9f\x98\x80"),
            "\"\xc3\xa9\xe8\xae\xa1\xf0\x9f\x98\x80\"");
}

TEST(AppendJsonString, ReplacesWhatIsNoUtf8) {
  const std::string lost = "\xef\xbf\xbd";
  for (const std::string bad :
       {"\xff", "\x80", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xc3",
        "\xf4\x90\x80\x80", "\xf0\x80\x80\xaf", "\xf5\x80\x80\x80"}) {
    std::string expected = "\"a";
    for (std::size_t i = 0; i < bad.size(); ++i) expected += lost;
    EXPECT_EQ(Written("a" + bad + "b"), expected + "b\"");
  }
}

// A parser that refuses what is no UTF-8 reads it, and gets the same text where
// that is possible.
TEST(AppendJsonString, IsReadBackWhateverTheBytes) {
  std::mt19937 random(1);
  // Bytes at which the rules change are more likely to break one.
  const std::vector<unsigned char> edges = {
      0x00, 0x1f, 0x22, 0x3c, 0x5c, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0,
      0xbf, 0xc0, 0xc2, 0xdf, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xf5, 0xff};
  int valid = 0;
  for (int i = 0; i < 100'000; ++i) {
    std::string text(random() % 5, ' ');
    for (char& c : text) c = static_cast<char>(edges[random() % edges.size()]);
    const std::string written = Written(text);
    ASSERT_EQ(written.find('<'), std::string::npos);
    const std::string back = json::parse(written).get<std::string>();
    if (IsUtf8(text)) {
      ++valid;
      ASSERT_EQ(back, text);
    } else {
      ASSERT_NE(back.find("\xef\xbf\xbd"), std::string::npos);
    }
  }
  EXPECT_GT(valid, 1000);
  EXPECT_LT(valid, 99'000);
}

TEST(AppendMicros, IsExact) {
  const auto written = [](std::int64_t nanos) {
    std::string out;
    AppendMicros(nanos, &out);
    return out;
  };
  EXPECT_EQ(written(0), "0.000");
  EXPECT_EQ(written(7), "0.007");
  EXPECT_EQ(written(-7), "-0.007");
  EXPECT_EQ(written(1234567), "1234.567");
  EXPECT_EQ(written(-1000), "-1.000");
  EXPECT_EQ(written(std::numeric_limits<std::int64_t>::max()),
            "9223372036854775.807");
  EXPECT_EQ(written(std::numeric_limits<std::int64_t>::min()),
            "-9223372036854775.808");
}

}  // namespace
}  // namespace d2l
