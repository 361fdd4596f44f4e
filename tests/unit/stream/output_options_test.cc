#include "stream/output/output_options.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "kit/failure.h"
#include "stream/output/header_file.h"
#include "stream/utc.h"

namespace weft::stream {

static void PrintTo(const Keyword& k, std::ostream* out) {
  *out << k.name << "=" << k.value << (k.quoted ? " (quoted)" : "");
}

namespace {

TEST(Rotation, TimesAndSizes) {
  const auto read = [](const std::string& text) {
    Rotation r;
    EXPECT_TRUE(parse_rotation(text, r)) << text;
    return std::pair{r.ns, r.bytes};
  };
  EXPECT_EQ(read("10s"), (std::pair{int64_t{10'000'000'000}, uint64_t{0}}));
  EXPECT_EQ(read("0.25s").first, 250'000'000);
  EXPECT_EQ(read("5min").first, 300'000'000'000);
  EXPECT_EQ(read("1h").first, 3'600'000'000'000);
  EXPECT_EQ(read("500MB"), (std::pair{int64_t{0}, uint64_t{500'000'000}}));
  EXPECT_EQ(read("2GiB").second, uint64_t{2} << 30);
  Rotation both;
  EXPECT_TRUE(parse_rotation("1s", both) && parse_rotation("1kB", both));
  EXPECT_TRUE(both.ns == 1'000'000'000 && both.bytes == 1000);
}

TEST(Rotation, RefusesEverythingElse) {
  for (const char* text : {"", "10", "s", "-1s", "0s", "10 s", "10sec", "1mb", "nans", "infs",
                           "1e300GB", "1e12h", "0.0000000001s", "0.1kB s"}) {
    Rotation r;
    EXPECT_FALSE(parse_rotation(text, r)) << text;
    EXPECT_FALSE(r.any()) << text;
  }
}

TEST(FileName, WordsStandForWhatTheySay) {
  const int64_t time = *parse_utc("2026-11-25T09:30:00.1234");
  EXPECT_EQ(FileName{"a/{time}_{stream}.{number}.dada"}.of(3, 7, time),
            "a/2026-11-25T09:30:00.123_3.0007.dada");
  EXPECT_EQ(FileName{"{stream}{stream}"}.of(12, 0, time), "1212");
  EXPECT_EQ(FileName{"{number}"}.of(0, 123'456, time), "123456");
  EXPECT_EQ(FileName{"sky.dada"}.of(0, 0, time), "sky.dada");
  EXPECT_EQ(FileName{"sky.dada"}.of(0, 2, time), "sky.dada.0002");
}

TEST(FileName, KnowsWhatIsInIt) {
  EXPECT_TRUE(FileName{"{stream}"}.tells_stream());
  EXPECT_FALSE(FileName{"{number}"}.tells_stream());
  EXPECT_TRUE(FileName{"{number}"}.tells_number());
  EXPECT_TRUE(FileName{"{time}"}.tells_time());
  EXPECT_EQ(FileName{"{time}{lane}"}.unknown(), "{lane}");
  EXPECT_EQ(FileName{"a{b"}.unknown(), "");
  EXPECT_EQ(FileName{"{stream}.dada"}.folder().of(1, 0, 0), ".");
  EXPECT_EQ(FileName{"/sky"}.folder().of(1, 0, 0), "/");
  EXPECT_EQ(FileName{"/data/{stream}/a{time}"}.folder().of(1, 0, 0), "/data/1");
  EXPECT_EQ(FileName{"{stream}-{number}-{time}"}.unknown(), "");
}

class HeaderFiles : public ::testing::Test {
 protected:
  ~HeaderFiles() override { (void)::unlink(path_.c_str()); }
  HeaderFile read(const std::string& text) const {
    std::ofstream{path_, std::ios::binary} << text;
    return HeaderFile{path_};
  }
  std::string refusal(const std::string& text) const {
    try {
      read(text);
    } catch (const kit::Failure& failure) {
      return std::string{failure.what()}.substr(path_.size());
    }
    return "none";
  }
  const std::string path_ = ::testing::TempDir() + "weft-header-" + std::to_string(::getpid());
};

using Lines = std::vector<Keyword>;

TEST_F(HeaderFiles, LinesOfPsrdadaAndCards) {
  EXPECT_EQ(read("# of the night\n\nSOURCE  B0329+54 # north\r\nFREQ\t150.0  \nOBSERVER J. Doe\n")
                .lines(),
            (Lines{{"SOURCE", "B0329+54"}, {"FREQ", "150.0"}, {"OBSERVER", "J. Doe"}}));
  EXPECT_EQ(read("SRC_NAME= 'B0329+54'           / name\nOBSFREQ =   150.0 / MHz\nEND").lines(),
            (Lines{{"SRC_NAME", "B0329+54", true}, {"OBSFREQ", "150.0"}}));
  // A quote is two within quotes; what is in them is no comment.
  EXPECT_EQ(
      read("OBSERVER= 'O''Brien '  # of the night\nSRC = '0329' / a name\nRUN='#4 / 5'\n").lines(),
      (Lines{{"OBSERVER", "O'Brien", true}, {"SRC", "0329", true}, {"RUN", "#4 / 5", true}}));
  // A header as it is at the beginning of a file of data.
  EXPECT_EQ(read(std::string{"FREQ 150\n"} + std::string(100, '\0')).lines(),
            (Lines{{"FREQ", "150"}}));
}

TEST_F(HeaderFiles, SayWhichLineIsNone) {
  EXPECT_EQ(refusal("FREQ 150\nSOURCE\n"), ":2: a line has a keyword and a value: \"SOURCE\"");
  EXPECT_EQ(refusal("SOURCE \x80\n"), ":1: this is no line of text in ASCII");
  EXPECT_THROW(HeaderFile{path_ + "-none"}, kit::Failure);
}

TEST_F(HeaderFiles, KeywordsKeepTheirPlaceAndHaveTheLastValue) {
  Keywords k;
  k.set("A", "1");
  k.add(read("B 2\nC 3\nA 4\n"));
  k.set("B", "5");
  k.propose("C", "6");
  k.propose("D", "7");
  EXPECT_EQ(k.all(), (Lines{{"A", "4"}, {"B", "5"}, {"C", "3"}, {"D", "7"}}));
}

}  // namespace
}  // namespace weft::stream
