
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/data/dataset.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::HasSubstr;

std::string Number(std::uint32_t n) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes += static_cast<char>(n >> shift);
  }
  return bytes;
}

std::string Pixels(std::size_t count) {
  std::mt19937 random(5);
  std::string pixels(count, '\0');
  // Half of the pixels are black, so that gzip can compress them.
  for (char& pixel : pixels) {
    pixel = static_cast<char>(random() % 2 * (random() % 256));
  }
  return pixels;
}

std::string ImageFile(std::uint32_t count, const std::string& pixels) {
  return Number(0x803) + Number(count) + Number(28) + Number(28) + pixels;
}
std::string LabelFile(std::uint32_t count, const std::string& labels) {
  return Number(0x801) + Number(count) + labels;
}

std::string Gzip(const std::string& bytes) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8,
                         Z_DEFAULT_STRATEGY),
            Z_OK);
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string ErrorOf(const absl::StatusOr<std::vector<std::uint8_t>>& parsed) {
  return parsed.ok() ? "no error" : std::string(parsed.status().message());
}

std::string AsText(const std::vector<std::uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

TEST(Idx, ReadsImagesAndLabels) {
  for (const std::uint32_t count : {0, 1, 3}) {
    const std::string pixels = Pixels(count * 784);
    const std::string images = ImageFile(count, pixels);
    const std::string all_labels("\x09\x00\x04", 3);
    const std::string labels = LabelFile(count, all_labels.substr(0, count));
    for (const bool gzipped : {false, true}) {
      const auto read = ParseIdxImages(gzipped ? Gzip(images) : images);
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(AsText(*read), pixels);
      const auto read_labels = ParseIdxLabels(gzipped ? Gzip(labels) : labels);
      ASSERT_TRUE(read_labels.ok()) << read_labels.status();
      EXPECT_EQ(AsText(*read_labels), all_labels.substr(0, count));
    }
  }
}

TEST(Idx, RefusesFilesTruncatedAnywhere) {
  const std::string images = ImageFile(2, Pixels(2 * 784));
  const std::string labels = LabelFile(3, "\x01\x02\x03");
  for (const std::string& file : {images, Gzip(images)}) {
    for (std::size_t size = 0; size < file.size(); ++size) {
      EXPECT_FALSE(ParseIdxImages(file.substr(0, size)).ok()) << size;
    }
    EXPECT_THAT(ErrorOf(ParseIdxImages(file.substr(0, file.size() - 1))),
                HasSubstr("ends early"));
  }
  for (const std::string& file : {labels, Gzip(labels)}) {
    for (std::size_t size = 0; size < file.size(); ++size) {
      EXPECT_THAT(ErrorOf(ParseIdxLabels(file.substr(0, size))),
                  HasSubstr("ends early"))
          << size;
    }
  }
}

// The checksum detects every wrong bit that changes the data. Some bits do not:
// those of the file's time and system, and, in a run of zeros, the distance of
// the zeros to repeat.
TEST(Idx, RefusesDataThatAFlippedBitChanges) {
  const std::string pixels = Pixels(784);
  const std::string file = Gzip(ImageFile(1, pixels));
  std::size_t accepted = 0;
  for (std::size_t i = 0; i < file.size() * 8; ++i) {
    std::string wrong = file;
    wrong[i / 8] = static_cast<char>(wrong[i / 8] ^ 1 << i % 8);
    const auto read = ParseIdxImages(wrong);
    if (!read.ok()) continue;
    ++accepted;
    EXPECT_EQ(AsText(*read), pixels) << i;
  }
  EXPECT_LT(accepted, file.size() * 8 / 20);
}

TEST(Idx, RefusesWhatFollows) {
  const std::string file = ImageFile(1, Pixels(784));
  for (const std::string& longer :
       {file + "x", Gzip(file + "x"), Gzip(file) + "x", Gzip(file) + Gzip("x"),
        Gzip(file) + std::string(5, '\0') + "x"}) {
    EXPECT_EQ(ErrorOf(ParseIdxImages(longer)),
              "there is more data in it than its header says");
  }
}

// RFC 1952, section 2.2; tapes and block devices fill up with zeros.
TEST(Idx, ReadsAllMembersOfAGzipFileAndZerosBehindThem) {
  const std::string pixels = Pixels(784);
  const std::string file = ImageFile(1, pixels);
  for (const std::size_t cut : {0, 1, 16, 100, 799}) {
    const std::string two = Gzip(file.substr(0, cut)) + Gzip(file.substr(cut));
    for (const std::string& members :
         {two, two + std::string(512, '\0'), two + Gzip("") + Gzip("")}) {
      const auto read = ParseIdxImages(members);
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(AsText(*read), pixels);
    }
  }
  const std::string two = Gzip(file.substr(0, 99)) + Gzip(file.substr(99));
  for (std::size_t size = Gzip(file.substr(0, 99)).size(); size < two.size();
       ++size) {
    EXPECT_FALSE(ParseIdxImages(two.substr(0, size)).ok()) << size;
  }
}

TEST(Idx, RefusesBombs) {
  // Ten megabytes of zeros in ten kilobytes, behind a header of one image.
  const std::string zeros(10 << 20, '\0');
  const std::string bomb = Gzip(ImageFile(1, zeros));
  EXPECT_LT(bomb.size(), 20'000U);
  EXPECT_EQ(ErrorOf(ParseIdxImages(bomb)),
            "there is more data in it than its header says");
  // Headers with more images than memory has room for, or than can exist.
  for (const bool gzipped : {false, true}) {
    const std::string most = ImageFile(0xffffffff, "x");
    EXPECT_EQ(
        ErrorOf(ParseIdxImages(gzipped ? Gzip(most) : most)),
        "it says that it has 4294967295 images, which is more than 1 GiB");
    const std::string many = ImageFile(1'000'000, "x");
    EXPECT_THAT(ErrorOf(ParseIdxImages(gzipped ? Gzip(many) : many)),
                HasSubstr("ends early"));
    const std::string few = ImageFile(10, "x");
    EXPECT_THAT(ErrorOf(ParseIdxImages(gzipped ? Gzip(few) : few)),
                HasSubstr(gzipped ? "shorter than its header" : "ends early"));
  }
}

TEST(Idx, SaysWhatIsWrong) {
  EXPECT_EQ(ErrorOf(ParseIdxImages(LabelFile(1, "\x01"))),
            "it begins with 0x00000801; an IDX file of images begins with "
            "0x00000803");
  EXPECT_EQ(ErrorOf(ParseIdxLabels("<!DOCTYPE html>")),
            "it is a web page (HTML), so the download went wrong, not an IDX "
            "file of labels");
  EXPECT_EQ(ErrorOf(ParseIdxImages(Gzip("<html><body>404</body>"))),
            "it is a web page (HTML), so the download went wrong, not an IDX "
            "file of images");
  EXPECT_EQ(ErrorOf(ParseIdxImages(std::string("PK\3\4\0\0", 6))),
            "it is a ZIP archive, as a .pt file of torch.save is, not an IDX "
            "file of images");
  EXPECT_EQ(ErrorOf(ParseIdxImages(Number(0x803) + Number(1) + Number(28) +
                                   Number(32) + Pixels(28 * 32))),
            "it says that its images have a side of 32 pixels; images of 28x28 "
            "are wanted");
  EXPECT_EQ(ErrorOf(ParseIdxLabels(LabelFile(3, "\x01\x09\x0a"))),
            "label 2 of it is 10; labels are from 0 to 9");
  EXPECT_THAT(ErrorOf(ParseIdxImages("\x1f\x8b\x07 no gzip")),
              HasSubstr("its gzip data is damaged"));
}

class FashionMnistTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = absl::StrCat(
        testing::TempDir(), "fashion_mnist_",
        testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void Write(const std::string& name, const std::string& bytes) {
    std::ofstream(directory_ + "/" + name, std::ios::binary) << bytes;
  }
  absl::Status Load() {
    return LoadFashionMnist(directory_, DatasetSplit::kTraining).status();
  }

  std::string directory_;
};

TEST_F(FashionMnistTest, LoadsBothSplits) {
  const std::string pixels = Pixels(2 * 784);
  Write("train-images-idx3-ubyte.gz", Gzip(ImageFile(2, pixels)));
  Write("train-labels-idx1-ubyte", LabelFile(2, "\x07\x03"));
  Write("t10k-images-idx3-ubyte", ImageFile(1, pixels.substr(784)));
  Write("t10k-labels-idx1-ubyte.gz", Gzip(LabelFile(1, "\x05")));
  const auto training = LoadFashionMnist(directory_, DatasetSplit::kTraining);
  ASSERT_TRUE(training.ok()) << training.status();
  EXPECT_EQ(training->name, "Fashion-MNIST, " + directory_);
  EXPECT_EQ(AsText(training->images), pixels);
  EXPECT_EQ(training->labels, (std::vector<std::uint8_t>{7, 3}));
  const auto test = LoadFashionMnist(directory_, DatasetSplit::kTest);
  ASSERT_TRUE(test.ok()) << test.status();
  EXPECT_EQ(AsText(test->images), pixels.substr(784));
  EXPECT_EQ(test->labels, (std::vector<std::uint8_t>{5}));
}

TEST_F(FashionMnistTest, NamesTheFileAndTheCure) {
  absl::Status status = Load();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(),
              HasSubstr(absl::StrCat("no train-images-idx3-ubyte in ",
                                     directory_, ", gzipped or not")));
  EXPECT_THAT(status.message(),
              HasSubstr(absl::StrCat("wget -P ", directory_, " http")));

  Write("train-images-idx3-ubyte", ImageFile(2, Pixels(2 * 784)));
  EXPECT_THAT(Load().message(), HasSubstr("no train-labels-idx1-ubyte in"));

  Write("train-labels-idx1-ubyte", LabelFile(1, "\x01"));
  status = Load();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            absl::StrCat(directory_,
                         " has 2 train images, but 1 labels; download the two "
                         "files together"));

  Write("train-labels-idx1-ubyte", LabelFile(2, "\x01\x0f"));
  EXPECT_EQ(Load().message(),
            absl::StrCat("cannot use ", directory_,
                         "/train-labels-idx1-ubyte: label 1 of it is 15; "
                         "labels are from 0 to 9"));
}

TEST_F(FashionMnistTest, RefusesWhatIsNoFile) {
  std::filesystem::create_directory(directory_ + "/train-images-idx3-ubyte");
  EXPECT_THAT(Load().message(), HasSubstr("is not a file of at most 1 GiB"));
  std::filesystem::remove(directory_ + "/train-images-idx3-ubyte");
  // The file never ends.
  std::filesystem::create_symlink("/dev/zero",
                                  directory_ + "/train-images-idx3-ubyte");
  EXPECT_THAT(Load().message(), HasSubstr("is not a file of at most 1 GiB"));
}

}  // namespace
}  // namespace d2l
