#include "common/lesson/lesson.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/status.h"

namespace d2l {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kEnglish[] = R"md(# Asynchronous computation

D2L 13.2
https://d2l.ai

## 004/In2: A clock that lies

- Also: 001/c3, 002/c4
- Book: d2l 13.2.1
- Exercises: 1, 3

Ten times: a random
matrix.

```python
# warm-up
a = 1
```

```text
numpy: 0.2660 sec
torch: 0.0010 sec
```

**Predict:** how much?

- all
- none

**You learn:** a clock lies.

## 004/In4: The true cost
)md";

Lesson TwoCells() {
  return {2, "async", 1, {{"004/In2", nullptr}, {"004/In4", nullptr}}};
}

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

TEST(FillInTexts, TakesAllThatASectionSays) {
  Lesson lesson = TwoCells();
  const absl::Status status = FillInTexts("l.md", kEnglish, &lesson);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(lesson.title, "Asynchronous computation");
  EXPECT_EQ(lesson.section, "D2L 13.2\nhttps://d2l.ai");
  const CellText& text = lesson.cells[0].text;
  EXPECT_EQ(text.id, "004/In2");
  EXPECT_EQ(text.title, "A clock that lies");
  EXPECT_THAT(text.also, ElementsAre("001/c3", "002/c4"));
  EXPECT_EQ(text.section, "d2l 13.2.1");
  EXPECT_EQ(text.exercises, "1, 3");
  EXPECT_EQ(text.context, "Ten times: a random matrix.");
  EXPECT_EQ(text.python, "# warm-up\na = 1");
  EXPECT_EQ(text.course_printed, "numpy: 0.2660 sec\ntorch: 0.0010 sec");
  EXPECT_EQ(text.predict, "how much?");
  EXPECT_THAT(text.choices, ElementsAre("all", "none"));
  EXPECT_EQ(text.learn, "a clock lies.");
  EXPECT_EQ(lesson.cells[1].text.title, "The true cost");
  EXPECT_THAT(lesson.cells[1].text.also, IsEmpty());
  EXPECT_TRUE(lesson.cells[0].HasId("004/In2"));
  EXPECT_TRUE(lesson.cells[0].HasId("002/c4"));
  EXPECT_FALSE(lesson.cells[1].HasId("002/c4"));
}

TEST(FillInTexts, AnotherLanguageLeavesWhatItDoesNotSay) {
  Lesson lesson = TwoCells();
  ASSERT_TRUE(FillInTexts("l.md", kEnglish, &lesson).ok());
  const absl::Status status = FillInTexts(
      "l.zh.md",
      "# 异步计算\n## 004/In2: 会骗人的时钟\n**预测：** 多少？\n\n- 全部\n"
      "\n**你会学到：** 时钟会骗人。\n",
      &lesson);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(lesson.title, "异步计算");
  const CellText& text = lesson.cells[0].text;
  EXPECT_EQ(text.title, "会骗人的时钟");
  EXPECT_EQ(text.section, "d2l 13.2.1");
  EXPECT_EQ(text.context, "Ten times: a random matrix.");
  EXPECT_EQ(text.predict, "多少？");
  EXPECT_THAT(text.choices, ElementsAre("全部"));
  EXPECT_EQ(text.learn, "时钟会骗人。");
  EXPECT_EQ(lesson.cells[1].text.title, "The true cost");
}

TEST(FillInTexts, AMarkedChoiceIsTheRightOne) {
  const auto cell = [](const std::string& choices) {
    return "# t\n## 004/In2: a\n**Predict:** how much?\n\n" + choices;
  };
  Lesson lesson = TwoCells();
  const CellText& text = lesson.cells[0].text;
  ASSERT_TRUE(FillInTexts("l.md", cell("- all\n- none\n"), &lesson).ok());
  EXPECT_EQ(text.right, 0);
  ASSERT_TRUE(
      FillInTexts("l.md", cell("- all\n- [x] a\n  part\n- none\n"), &lesson)
          .ok());
  EXPECT_EQ(text.right, 2);
  EXPECT_THAT(text.choices, ElementsAre("all", "a part", "none"));
  // A translation has the same choices, without the mark.
  ASSERT_TRUE(
      FillInTexts("l.zh.md", cell("- 全部\n- 一部分\n- 没有\n"), &lesson).ok());
  EXPECT_EQ(text.right, 2);
  EXPECT_THAT(text.choices, ElementsAre("全部", "一部分", "没有"));
  EXPECT_EQ(Message(FillInTexts("l.zh.md", cell("- 全部\n"), &lesson)),
            "l.zh.md:2: 004/In2 has fewer choices than in English");
}

TEST(FillInTexts, ErrorsNameTheSection) {
  Lesson lesson = TwoCells();
  EXPECT_EQ(Message(FillInTexts("l.md", "# t\n\n## 9/x: y\n", &lesson)),
            "l.md:3: 9/x has no cell in the lesson's list, or stands behind a "
            "later one");
  EXPECT_EQ(Message(FillInTexts("l.md", "# t\n## 004/In4: a\n## 004/In2: b\n",
                                &lesson)),
            "l.md:3: 004/In2 has no cell in the lesson's list, or stands "
            "behind a later one");
  EXPECT_EQ(Message(FillInTexts("l.md", "# t\n## 004/In4: a\n```cpp\nx;\n```\n",
                                &lesson)),
            "l.md:2: 004/In4 has code in \"cpp\"; there are python and text");
  EXPECT_EQ(Message(FillInTexts("l.md", "# t\n## 004/In4: a\n**Lern:** b\n",
                                &lesson)),
            "l.md:2: 004/In4 has a part \"Lern\"; there are Predict and You "
            "learn");
}

}  // namespace
}  // namespace d2l
