#include "common/safetensors/safetensors.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/files/atomic_file.h"
#include "common/device/testing/testing.h"
#include "common/ops/ops.h"
#include "common/ops/testing/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l::safetensors {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::UnorderedElementsAre;

std::string TempPath(const std::string& name) {
  return absl::StrCat(testing::TempDir(), "/", getpid(), "-", name);
}

void WriteFile(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
}

// A file with this header, and these bytes.
std::string FileOf(const std::string& header, std::string_view data) {
  const std::uint64_t size = header.size();
  std::string bytes(sizeof(size), '\0');
  std::memcpy(bytes.data(), &size, sizeof(size));
  return absl::StrCat(bytes, header,
                      absl::string_view(data.data(), data.size()));
}

std::string ErrorOf(std::string_view bytes) {
  const std::string path = TempPath("error");
  WriteFile(path, bytes);
  const absl::StatusOr<File> file = LoadFile(path);
  if (file.ok()) return "none";
  EXPECT_THAT(std::string(file.status().message()), HasSubstr(path));
  return std::string(file.status().message());
}

NamedTensors Examples(Device device) {
  const auto random = [&](const Shape& shape, DType dtype, Placement place) {
    return RandomTensor(shape, device, dtype, place);
  };
  return {
      {"a", random({3, 5}, DType::kFloat32, Placement::kContiguous)},
      {"b.weight", random({7}, DType::kUInt8, Placement::kOffset)},
      {"c", random({2, 3, 4}, DType::kFloat64, Placement::kTransposed)},
      {"d", random({4, 3}, DType::kInt64, Placement::kColumns)},
      {"e", Tensor(Empty({0, 3}, device))},
      {"f", Full({}, 2.5, device)},
      {"g", Expand(Full({1, 3}, 0.1, device), {2, 3})},
      {"\"\xc3\xa9\n", Full({2}, -0.0, device)},
  };
}

void ExpectSame(const NamedTensors& a, const NamedTensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, tensor] : a) {
    const auto found = b.find(name);
    ASSERT_TRUE(found != b.end()) << name;
    EXPECT_EQ(tensor.shape(), found->second.shape()) << name;
    EXPECT_EQ(tensor.dtype(), found->second.dtype()) << name;
    EXPECT_EQ(ValuesOf(tensor), ValuesOf(found->second)) << name;
  }
}

TEST(SafetensorsTest, LoadsWhatItSaved) {
  const std::string path = TempPath("round");
  for (const Device device : AllDevices()) {
    const NamedTensors tensors = Examples(device);
    const Metadata metadata = {{"made by", "\"a\"\n"}, {"", ""}};
    Metadata saved_metadata = metadata;
    saved_metadata["format"] = "pt";
    ASSERT_TRUE(SaveFile(tensors, path, metadata).ok());
    for (const Device to : AllDevices()) {
      const absl::StatusOr<File> file = LoadFile(path, to);
      ASSERT_TRUE(file.ok()) << file.status();
      ExpectSame(tensors, file->tensors);
      EXPECT_EQ(file->metadata, saved_metadata);
      for (const auto& [name, tensor] : file->tensors) {
        EXPECT_EQ(tensor.device(), to) << name;
        EXPECT_TRUE(tensor.is_contiguous()) << name;
      }
    }
  }
}

// Bit for bit: NaNs with their payload, denormals, the largest integers.
TEST(SafetensorsTest, KeepsBits) {
  const std::string path = TempPath("bits");
  std::vector<float> floats(3);
  const std::uint32_t bits[] = {0x7fc12345, 0x80000001, 0xff800000};
  std::memcpy(floats.data(), bits, sizeof(bits));
  ASSERT_TRUE(SaveFile({{"f", FromVector(floats, {3})},
                        {"i", FromVector<std::int64_t>({INT64_MIN}, {1})}},
                       path)
                  .ok());
  const absl::StatusOr<File> file = LoadFile(path);
  ASSERT_TRUE(file.ok()) << file.status();
  const std::vector<float> loaded = ToVector<float>(file->tensors.at("f"));
  EXPECT_EQ(std::memcmp(loaded.data(), bits, sizeof(bits)), 0);
  EXPECT_EQ(Item<std::int64_t>(file->tensors.at("i")), INT64_MIN);
}

// More than one piece of a read, and not a multiple of it.
TEST(SafetensorsTest, LoadsLargeTensors) {
  const std::string path = TempPath("large");
  const Tensor x = Rand({1201, 2003}), y = Rand({1 << 20});
  ASSERT_TRUE(SaveFile({{"x", x}, {"y", y}}, path).ok());
  const absl::StatusOr<File> file = LoadFile(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(ToVector<float>(file->tensors.at("x")), ToVector<float>(x));
  EXPECT_EQ(ToVector<float>(file->tensors.at("y")), ToVector<float>(y));
  std::filesystem::remove(path);
}

TEST(SafetensorsTest, TheFormatIsThePublishedOne) {
  const std::string path = TempPath("format");
  ASSERT_TRUE(SaveFile({{"w", FromVector<float>({1, 2}, {1, 2})},
                        {"v", FromVector<std::uint8_t>({3}, {})},
                        {"d", FromVector<double>({0.5}, {1})}},
                       path, {{"k", "v"}})
                  .ok());
  std::string header =
      R"({"__metadata__":{"format":"pt","k":"v"},)"
      R"("d":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},)"
      R"("w":{"dtype":"F32","shape":[1,2],"data_offsets":[8,16]},)"
      R"("v":{"dtype":"U8","shape":[],"data_offsets":[16,17]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(ReadFile(path),
            FileOf(header, std::string_view("\0\0\0\0\0\0\xe0\x3f"
                                            "\0\0\x80\x3f\0\0\0\x40\3",
                                            17)));
}

// The header of one tensor, with something else in it.
std::string One(const std::string& dtype, const std::string& shape,
                const std::string& offsets) {
  return absl::StrCat("{\"w\":{\"dtype\":", dtype, ",\"shape\":", shape,
                      ",\"data_offsets\":", offsets, "}}");
}

TEST(SafetensorsTest, KeepsAFormatThatIsGiven) {
  const std::string path = TempPath("given");
  ASSERT_TRUE(SaveFile({}, path, {{"format", "np"}}).ok());
  EXPECT_EQ(LoadFile(path)->metadata, (Metadata{{"format", "np"}}));
}

// The value of the bits of a float with this many bits of mantissa, and with an
// exponent that is this for 1.
double ValueOf(int bits, int mantissa_bits, int exponent_of_one) {
  const int sign = (bits & 0x8000) != 0 ? -1 : 1;
  const int exponent = (bits & 0x7fff) >> mantissa_bits;
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  if (exponent == 2 * exponent_of_one + 1) {
    return mantissa == 0 ? sign * HUGE_VAL : std::nan("");
  }
  const bool is_normal = exponent > 0;
  return sign *
         std::ldexp(mantissa + (is_normal ? 1 << mantissa_bits : 0),
                    std::max(exponent, 1) - exponent_of_one - mantissa_bits);
}

// All of them: subnormal, infinite, NaN. Sixteen times, which is more than a
// piece of a read, and not a multiple of it.
TEST(SafetensorsTest, ReadsSixteenBitFloats) {
  const std::string path = TempPath("halves");
  constexpr int kCount = 0x10000 * 16 + 1;
  std::vector<std::uint16_t> halves(kCount);
  std::iota(halves.begin(), halves.end(), std::uint16_t{0});
  const std::string bytes(reinterpret_cast<const char*>(halves.data()),
                          halves.size() * 2);
  const struct {
    const char* code;
    int mantissa_bits, exponent_of_one;
  } kKinds[] = {{"BF16", 7, 127}, {"F16", 10, 15}};
  for (const auto& [code, mantissa_bits, exponent_of_one] : kKinds) {
    WriteFile(path, FileOf(One(absl::StrCat("\"", code, "\""),
                               absl::StrCat("[", kCount, "]"),
                               absl::StrCat("[0,", 2 * kCount, "]")),
                           bytes));
    for (const Device device : AllDevices()) {
      const absl::StatusOr<File> file = LoadFile(path, device);
      ASSERT_TRUE(file.ok()) << file.status();
      const std::vector<float> read = ToVector<float>(file->tensors.at("w"));
      ASSERT_EQ(read.size(), halves.size());
      for (int i = 0; i < kCount; ++i) {
        const double wanted =
            ValueOf(halves[i], mantissa_bits, exponent_of_one);
        ASSERT_EQ(std::isnan(read[i]), std::isnan(wanted)) << halves[i];
        ASSERT_EQ(std::signbit(read[i]), (halves[i] & 0x8000) != 0);
        if (!std::isnan(wanted)) {
          ASSERT_EQ(read[i], wanted) << code << " " << halves[i];
        }
      }
      // Into memory of another dtype.
      const Tensor wide = Empty({kCount}, device, DType::kFloat64);
      absl::StatusOr<Reader> reader = Reader::Open(path);
      ASSERT_TRUE(reader->ReadInto({{"w", wide}}).ok());
      EXPECT_EQ(ToVector<double>(wide)[0x3c01], read[0x3c01]);
    }
  }
  std::filesystem::remove(path);
}

TEST(SafetensorsTest, TensorsMayStandInAnyOrder) {
  const std::string path = TempPath("order");
  WriteFile(path,
            FileOf("{\"b\":{\"data_offsets\":[2,3],\"shape\":[1],\"dtype\":"
                   "\"U8\"},\"a\" : {\"dtype\":\"U8\",\"shape\":[2],"
                   "\"data_offsets\":[0,2]}, \"z\":{\"dtype\":\"F32\","
                   "\"shape\":[9223372036854775807,0],\"data_offsets\":[2,2]}}"
                   " \n",
                   "\1\2\3"));
  const absl::StatusOr<File> file = LoadFile(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(ValuesOf(file->tensors.at("a")), (std::vector<double>{1, 2}));
  EXPECT_EQ(ValuesOf(file->tensors.at("b")), (std::vector<double>{3}));
  EXPECT_EQ(file->tensors.at("z").numel(), 0);
}

TEST(SafetensorsTest, SaysWhatIsWrong) {
  const std::string good = One("\"U8\"", "[2]", "[0,2]");
  ASSERT_EQ(ErrorOf(FileOf(good, "ab")), "none");
  const struct {
    std::string header;
    const char* error;
  } kCases[] = {
      {One("\"I16\"", "[1]", "[0,2]"),
       "the dtype \"I16\"; F32, F64, BF16, F16, I64 and U8 can be read. "
       "Convert"},
      {One("\"BF16\"", "[2]", "[0,2]"), "from 0 to 2; wanted are 4 from 0 on"},
      {One("\"u8\"", "[2]", "[0,2]"), "the dtype \"u8\""},
      {One("3", "[2]", "[0,2]"), "the number 3 in \"w\""},
      {One("\"U8\"", "[2]", "[0,1]"), "from 0 to 1; wanted are 2 from 0 on"},
      {One("\"U8\"", "[1]", "[0,1]"), "holds 2 bytes of data; the header tel"},
      {One("\"U8\"", "[3]", "[0,3]"), "holds 2 bytes of data; the header tel"},
      {One("\"U8\"", "[1]", "[1,2]"), "from 1 to 2; wanted are 1 from 0 on"},
      {One("\"U8\"", "[2]", "[2,0]"), "from 2 to 0"},
      {One("\"U8\"", "[2]", "[0]"), "not two \"data_offsets\""},
      {One("\"U8\"", "[2]", "[0,1,2]"), "not two \"data_offsets\""},
      {One("\"U8\"", "[-2]", "[0,2]"), "a negative number in \"w\""},
      {One("\"U8\"", "[2.0]", "[0,2]"), "not a 64-bit integer in \"w\""},
      {One("\"U8\"", "[2e0]", "[0,2]"), "not a 64-bit integer"},
      {One("\"U8\"", "[99999999999999999999]", "[0,2]"),
       "not a 64-bit integer"},
      {One("\"U8\"", "[1e999]", "[0,2]"), "not a 64-bit integer"},
      {One("\"U8\"", "[9223372036854775808]", "[0,2]"), "9223372036854775808"},
      {One("\"F32\"", "[4611686018427387904, 4]", "[0,2]"),
       "more elements than 64 bits can count"},
      {One("\"F32\"", "[4611686018427387904]", "[0,2]"), "more elements than"},
      {One("\"U8\"", "[1,1,1,1,1,1,1,1,2]", "[0,2]"), "more than 8 numbers"},
      {One("\"U8\"", "[[2]]", "[0,2]"), "a list in \"w\""},
      {One("\"U8\"", "{}", "[0,2]"), "an object where there is none"},
      {One("\"U8\"", "[true]", "[0,2]"), "true or false"},
      {One("\"U8\"", "null", "[0,2]"), "null"},
      {One("\"U8\"", "\"2\"", "[0,2]"), "a text in \"w\""},
      {"{\"w\":{\"dtype\":\"U8\",\"shape\":[2]}}",
       "not \"dtype\", \"shape\" and \"data_offsets\" in \"w\""},
      {"{\"w\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2],"
       "\"more\":[1]}}",
       "a list in \"w\""},
      {"{\"w\":{\"dtype\":\"U8\",\"shape\":[2],\"shape\":[2],"
       "\"data_offsets\":[0,2]}}",
       "\"shape\" comes twice in \"w\""},
      {absl::StrCat(good.substr(0, good.size() - 1), ",", good.substr(1)),
       "\"w\" comes twice"},
      {"{\"__metadata__\":{\"a\":\"b\",\"a\":\"c\"}}", "\"a\" comes twice"},
      {"{\"__metadata__\":{},\"__metadata__\":{}}", "\"__metadata__\" comes"},
      {"{\"__metadata__\":{\"a\":1}}", "the number 1 in \"__metadata__\""},
      {"{\"__metadata__\":{\"a\":{}}}", "an object where there is none"},
      {"{\"__metadata__\":{\"a\":[]}}", "a list in \"__metadata__\""},
      {"{\"__metadata__\":\"a\"}", "the header has a text"},
      {"{\"权重\\u001b[2J\":{\"dtype\":1}}",
       "the number 1 in \"权重\\x1b[2J\""},
      {"{\"" + std::string(5000, 'w') + "\":{\"dtype\":1}}", "www...\""},
      {"{\"w\":[]}", "the header has a list"},
      {"{\"w\":1}", "the header has the number 1"},
      {"[]", "does not begin with {"},
      {" " + good, "does not begin with {"},
      {"\xef\xbb\xbf" + good, "does not begin with {"},
      {"", "does not begin with {"},
      {good + "{}", "is not JSON at its byte 54"},
      {"{\"\xff\":1}", "is not JSON"},
      {std::string("{}\0", 3), "is not JSON"},
      {"{}", "holds 2 bytes of data; the header tells of 0"},
  };
  for (const auto& [header, error] : kCases) {
    EXPECT_THAT(ErrorOf(FileOf(header, "ab")), HasSubstr(error)) << header;
  }
  EXPECT_THAT(ErrorOf("ab"), HasSubstr("it has less than 8 bytes"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("it has less than 8 bytes"));
  EXPECT_THAT(ErrorOf("\n<!DOCTYPE html><html>"), HasSubstr("a web page"));
  EXPECT_THAT(
      ErrorOf(std::string("PK\3\4\0\0\0\0\0\0", 10)),
      AllOf(HasSubstr("it is a ZIP archive, as a .pt file of torch.save"),
            HasSubstr("state dict, convert it:\n  python3 -c 'import"),
            HasSubstr(".safetensors\"")));
  EXPECT_THAT(ErrorOf("\x1f\x8b\x08 and more"),
              AllOf(HasSubstr("gzip data"), Not(HasSubstr("python3"))));
  EXPECT_THAT(ErrorOf("\xff\xff\xff\xff\xff\xff\xff\xff{}"),
              HasSubstr("a header of 18446744073709551615 bytes is announced; "
                        "2 is the most"));
}

// Deep nesting is refused at its third level: no recursion.
TEST(SafetensorsTest, NestingIsBounded) {
  std::string deep = "{\"w\":";
  for (int i = 0; i < 1000000; ++i) deep += "[";
  EXPECT_THAT(ErrorOf(FileOf(deep, "")), HasSubstr("the header has a list"));
}

// 13 MB; a parser whose time grows with the square does not end within the
// test's time.
TEST(SafetensorsTest, ReadsAHeaderOfManyTensors) {
  constexpr int kTensors = 200'000;
  std::string json = "{";
  for (int i = 0; i < kTensors; ++i) {
    absl::StrAppend(&json, i > 0 ? "," : "", "\"w", i,
                    R"(":{"dtype":"U8","shape":[1],"data_offsets":[)", i, ",",
                    i + 1, "]}");
  }
  const Header header = ParseHeader(json + "}", kTensors);
  ASSERT_EQ(header.entries.size(), kTensors);
  EXPECT_EQ(header.entries.back().name, absl::StrCat("w", kTensors - 1));
}

TEST(SafetensorsTest, TwoTensorsDoNotShareBytes) {
  const auto two = [](const char* first, const char* second) {
    return FileOf(
        absl::StrCat(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)", first,
                     R"(},"b":{"dtype":"U8","shape":[2],"data_offsets":)",
                     second, "}}"),
        "abcd");
  };
  EXPECT_EQ(ErrorOf(two("[0,2]", "[2,4]")), "none");
  EXPECT_EQ(ErrorOf(two("[2,4]", "[0,2]")), "none");
  EXPECT_THAT(ErrorOf(two("[0,2]", "[0,2]")), HasSubstr("wanted are 2 from 2"));
  EXPECT_THAT(ErrorOf(two("[0,2]", "[1,3]")), HasSubstr("wanted are 2 from 2"));
  EXPECT_THAT(ErrorOf(two("[0,2]", "[3,5]")), HasSubstr("wanted are 2 from 2"));
}

TEST(SafetensorsTest, NoBeginningOfAFileIsOne) {
  const std::string path = TempPath("truncated");
  ASSERT_TRUE(SaveFile(Examples(Device()), path).ok());
  const std::string bytes = ReadFile(path);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ASSERT_NE(ErrorOf(bytes.substr(0, size)), "none") << size;
  }
  EXPECT_NE(ErrorOf(bytes + "x"), "none");
}

// A changed byte is refused, or belongs to the data or a name.
TEST(SafetensorsTest, ChangedBytesDoNoHarm) {
  const std::string path = TempPath("changed");
  const NamedTensors tensors = {{"a", Rand({3})}, {"b", Rand({2, 2})}};
  ASSERT_TRUE(SaveFile(tensors, path, {{"k", "v"}}).ok());
  const std::string bytes = ReadFile(path);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const int flip : {1, 16, 128}) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ flip);
      WriteFile(path, changed);
      const absl::StatusOr<File> file = LoadFile(path);
      if (!file.ok()) continue;
      EXPECT_EQ(file->tensors.size(), 2u);
    }
  }
}

TEST(SafetensorsTest, TheHeaderIsBounded) {
  const std::string path = TempPath("bounded");
  const std::uint64_t size = kMaxHeaderBytes + 8;
  std::ofstream(path).write(reinterpret_cast<const char*>(&size), sizeof(size));
  std::filesystem::resize_file(path, size + sizeof(size));  // sparse
  EXPECT_THAT(std::string(LoadFile(path).status().message()),
              HasSubstr("a header of 100000008 bytes is announced; 100000000 "
                        "is the most"));
  const Metadata large = {{"m", std::string(kMaxHeaderBytes, 'm')}};
  EXPECT_THAT(std::string(SaveFile({}, path, large).message()),
              HasSubstr("bytes; 100000000 is the most"));
}

// A sparse file of the length that it says, for which memory is too small.
TEST(SafetensorsTest, TensorsBeyondMemoryAreRefused) {
  const std::string path = TempPath("sparse");
  const std::int64_t size = std::int64_t{1} << 42;
  const std::string header = FileOf(One("\"U8\"", absl::StrCat("[", size, "]"),
                                        absl::StrCat("[0,", size, "]")),
                                    "");
  WriteFile(path, header);
  if (truncate(path.c_str(), static_cast<off_t>(header.size()) + size) != 0) {
    GTEST_SKIP() << "no file of 4 TiB here, not even a sparse one";
  }
  EXPECT_EQ(LoadFile(path).status().code(),
            absl::StatusCode::kResourceExhausted);
  std::filesystem::remove(path);
}

TEST(SafetensorsTest, FilesThatAreNoFiles) {
  EXPECT_EQ(LoadFile(TempPath("none")).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(LoadFile(testing::TempDir()).status().message()),
              HasSubstr("it is not a regular file"));
  EXPECT_THAT(std::string(LoadFile("/dev/zero").status().message()),
              HasSubstr("it is not a regular file"));
}

std::vector<std::string> FilesIn(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

TEST(SafetensorsTest, AFileThatCannotBeWrittenStaysAsItWas) {
  const NamedTensors tensors = {{"w", Rand({1000})}};
  const absl::Status full = SaveFile(tensors, "/dev/full");
  EXPECT_THAT(std::string(full.message()),
              HasSubstr("cannot write /dev/full: No space left on device"));
  const std::string directory = TempPath("directory");
  std::filesystem::create_directory(directory);
  const std::string path = directory + "/x.safetensors";
  EXPECT_EQ(SaveFile(tensors, directory + "/none/x").code(),
            absl::StatusCode::kUnavailable);
  ASSERT_TRUE(SaveFile({{"w", Ones({2})}}, path).ok());
  // A full disk is noticed while writing.
  const rlimit old = [] {
    rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    return limit;
  }();
  rlimit small = old;
  small.rlim_cur = 1000;
  std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  const absl::Status large = SaveFile(tensors, path);
  setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_THAT(std::string(large.message()), HasSubstr("File too large"));
  // An undefined tensor is an error, too.
  EXPECT_THROW(SaveFile({{"u", Tensor()}}, path).IgnoreError(),
               std::invalid_argument);
  EXPECT_FALSE(SaveFile({{"\xff", Ones({2})}}, path).ok());
  EXPECT_THAT(
      std::string(SaveFile({{"__metadata__", Ones({1})}}, path).message()),
      HasSubstr("no tensor can be called __metadata__"));
  EXPECT_THAT(FilesIn(directory), testing::ElementsAre("x.safetensors"));
  const absl::StatusOr<File> file = LoadFile(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(ValuesOf(file->tensors.at("w")), (std::vector<double>{1, 1}));
}

TEST(SafetensorsTest, NoTensorsAreAFile) {
  const std::string path = TempPath("empty");
  ASSERT_TRUE(SaveFile({}, path, {{"a", "b"}}).ok());
  const absl::StatusOr<File> file = LoadFile(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->tensors.empty());
  EXPECT_THAT(file->metadata,
              UnorderedElementsAre(Pair("a", "b"), Pair("format", "pt")));
}

}  // namespace
}  // namespace d2l::safetensors
