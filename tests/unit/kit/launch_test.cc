#include "kit/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>

namespace weft::kit {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;
namespace fs = std::filesystem;

TEST(PutInFront, KeepsTheRestInOrder) {
  EXPECT_EQ(put_in_front("/w", ""), "/w");
  EXPECT_EQ(put_in_front("/w", "/a:/b"), "/w:/a:/b");
}

TEST(PutInFront, FirstAppearsOnce) {
  EXPECT_EQ(put_in_front("/w", "/w"), "/w");
  EXPECT_EQ(put_in_front("/w", "/a:/w:/b:/w"), "/w:/a:/b");
}

// To ld.so an empty element is the current folder, which a program is not to take libraries from by
// accident.
TEST(PutInFront, DropsEmptyElements) {
  EXPECT_EQ(put_in_front("/w", ":/a::/b:"), "/w:/a:/b");
}

class PlanTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "weft-launch-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    for (const char* library : kLibraries) std::ofstream(fs::path(folder_) / library) << "x";
  }
  void TearDown() override { fs::remove_all(folder_); }

  Result<LaunchPlan, Refusal> plan(const LaunchRequest& request) {
    return plan_launch(request, folder_, inherited_);
  }

  std::string folder_;
  Environment inherited_;
};

TEST_F(PlanTest, SetsLibraryPathAndHowUcxConnects) {
  const auto p = plan({{}, {FIXTURES "/program_runpath"}});
  ASSERT_TRUE(p.ok());
  EXPECT_EQ(p->path, FIXTURES "/program_runpath");
  EXPECT_THAT(p->environment, UnorderedElementsAre(Pair("LD_LIBRARY_PATH", folder_),
                                                   Pair("UCX_SOCKADDR_TLS_PRIORITY", "rdmacm")));
  EXPECT_THAT(p->warnings, IsEmpty());
}

TEST_F(PlanTest, RpathAddsPreload) {
  inherited_["LD_PRELOAD"] = "/x.so";
  const auto p = plan({{}, {FIXTURES "/program_rpath"}});
  ASSERT_TRUE(p.ok());
  EXPECT_EQ(p->environment.at("LD_PRELOAD"),
            folder_ + "/libibverbs.so.1:" + folder_ + "/librdmacm.so.1:/x.so");
}

// By rdma_cm or by TCP, for a number is one of both; by TCP where it has no RDMA.
TEST_F(PlanTest, UcxConnectsByOneWay) {
  const auto way = [&](const char* transports) {
    inherited_["UCX_TLS"] = transports;
    return plan({{}, {FIXTURES "/program_runpath"}})->environment.at("UCX_SOCKADDR_TLS_PRIORITY");
  };
  for (const char* rdma : {"", "rc_v", "ud_verbs", "tcp,rc", "sm,ib", "all", "^tcp", "^ib"}) {
    EXPECT_EQ(way(rdma), "rdmacm") << rdma;
  }
  for (const char* plain : {"tcp", "tcp,self", "sm,tcp", "posix"}) EXPECT_EQ(way(plain), "tcp");
  inherited_["UCX_SOCKADDR_TLS_PRIORITY"] = "tcp,rdmacm";
  EXPECT_FALSE(
      plan({{}, {FIXTURES "/program_runpath"}})->environment.contains("UCX_SOCKADDR_TLS_PRIORITY"))
      << "whoever has set it wants it";
}

TEST_F(PlanTest, SdpIsPreloadedInFrontOfAllOthers) {
  inherited_["LD_PRELOAD"] = "/x.so";
  const auto missing = plan({{}, {FIXTURES "/program_rpath"}, true});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().status, kStatusOwnFailure);
  EXPECT_THAT(missing.error().sentence, HasSubstr("libweft-sdp.so"));
  std::ofstream(fs::path(folder_) / kSdpLibrary) << "x";
  const auto p = plan({{}, {FIXTURES "/program_runpath"}, true});
  ASSERT_TRUE(p.ok());
  EXPECT_EQ(p->environment.at("LD_PRELOAD"), folder_ + "/libweft-sdp.so:/x.so");
}

TEST_F(PlanTest, ProgramsBySdpPrintNoWarningsOfWeft) {
  std::ofstream(fs::path(folder_) / kSdpLibrary) << "x";
  const auto p = plan({{}, {FIXTURES "/program_runpath"}, true});
  ASSERT_TRUE(p.ok());
  EXPECT_EQ(p->environment.at("WEFT_LOG"), "error");
  EXPECT_FALSE(plan({{}, {FIXTURES "/program_runpath"}})->environment.contains("WEFT_LOG"));
  inherited_["WEFT_LOG"] = "info";
  EXPECT_FALSE(plan({{}, {FIXTURES "/program_runpath"}, true})->environment.contains("WEFT_LOG"))
      << "whoever has set it wants it";
}

TEST_F(PlanTest, RequestedVariablesWinOverInherited) {
  inherited_["LD_LIBRARY_PATH"] = "/inherited";
  inherited_["PATH"] = "/nowhere";
  const auto p = plan({{"LD_LIBRARY_PATH=/requested", "PATH=" FIXTURES, "EMPTY=", "EQUALS=a=b"},
                       {"program_runpath"}});
  ASSERT_TRUE(p.ok());
  EXPECT_EQ(p->path, FIXTURES "/program_runpath");
  EXPECT_EQ(p->environment.at("LD_LIBRARY_PATH"), folder_ + ":/requested");
  EXPECT_EQ(p->environment.at("EMPTY"), "");
  EXPECT_EQ(p->environment.at("EQUALS"), "a=b");
}

TEST_F(PlanTest, WithoutPathLooksWhereExecvpLooks) {
  const auto p = plan({{}, {"sh"}});
  ASSERT_TRUE(p.ok());
  EXPECT_EQ(p->path, "/bin/sh");
}

TEST_F(PlanTest, MalformedVariable) {
  for (const char* text : {"NAME", "=value", ""}) {
    const auto p = plan({{text}, {"sh"}});
    ASSERT_FALSE(p.ok()) << text;
    EXPECT_EQ(p.error().status, kStatusOwnFailure);
  }
}

// A test run without the faults that were asked for would look like a good one.
TEST_F(PlanTest, FaultsThatCannotBeReadAreRefused) {
  const auto asked = plan({{"WEFT_FAULT=los:0.1"}, {"/bin/true"}});
  ASSERT_FALSE(asked.ok());
  EXPECT_EQ(asked.error().status, kStatusOwnFailure);
  EXPECT_THAT(
      asked.error().sentence,
      HasSubstr(
          "WEFT_FAULT=los:0.1 is not accepted: no fault is called 'los:0.1'; there are loss ("));
  EXPECT_THAT(asked.error().sentence, HasSubstr("unset it"));
  inherited_["WEFT_FAULT"] = "delay:3";
  EXPECT_FALSE(plan({{}, {"/bin/true"}}).ok());
  inherited_["WEFT_FAULT"] = "delay:3ms";
  EXPECT_TRUE(plan({{}, {"/bin/true"}}).ok());
  EXPECT_TRUE(plan({{"WEFT_FAULT="}, {"/bin/true"}}).ok());
}

TEST_F(PlanTest, OptionsThatDoNotExistAreRefused) {
  const auto misspelt = plan({{"WEFT_CRCC=off"}, {"/bin/true"}});
  ASSERT_FALSE(misspelt.ok());
  EXPECT_EQ(misspelt.error().status, kStatusOwnFailure);
  EXPECT_THAT(misspelt.error().sentence, HasSubstr("did you mean WEFT_CRC?"));
  EXPECT_THAT(misspelt.error().sentence, HasSubstr("WEFT_CRC? Correct it"));
  const auto refused = plan({{"WEFT_CRC=maybe"}, {"/bin/true"}});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().sentence, HasSubstr("or 0. Correct it"));
  inherited_["WEFT_CRC"] = "maybe";
  EXPECT_FALSE(plan({{}, {"/bin/true"}}).ok());
  EXPECT_TRUE(plan({{"WEFT_CRC=off"}, {"/bin/true"}}).ok())
      << "--env comes before what is inherited";
  inherited_ = {{"WEFT_SDP_CONFIG", "x"}, {"SWEFT_CRC", "x"}};
  EXPECT_TRUE(plan({{}, {"/bin/true"}}).ok());
}

TEST_F(PlanTest, DamagedProgramIsLeftToTheKernel) {
  const std::string path = folder_ + "/damaged";
  fs::copy_file(FIXTURES "/program_runpath", path);
  fs::resize_file(path, 100);
  const auto p = plan({{}, {path}});
  ASSERT_TRUE(p.ok());
  ASSERT_EQ(p->warnings.size(), 1U);
  EXPECT_THAT(p->warnings[0], HasSubstr("damaged"));
}

TEST_F(PlanTest, MissingLibraryIsNamed) {
  fs::remove(fs::path(folder_) / "libibverbs.so.1");
  const auto p = plan({{}, {"sh"}});
  ASSERT_FALSE(p.ok());
  EXPECT_EQ(p.error().status, kStatusOwnFailure);
  EXPECT_THAT(p.error().sentence, HasSubstr("libibverbs.so.1"));
}

TEST_F(PlanTest, FolderThatLoaderWouldSplit) {
  for (const char* name : {"a:b", "a;b", "a b", "a$b"}) {
    const auto p = plan_launch({{}, {"sh"}}, folder_ + "/" + name, {});
    ASSERT_FALSE(p.ok()) << name;
    EXPECT_THAT(p.error().sentence, HasSubstr("move weft")) << name;
  }
}

TEST(OwnLibraryFolder, LiesBesideTheFolderOfThisProgram) {
  const fs::path self = fs::read_symlink("/proc/self/exe");
  EXPECT_EQ(own_library_folder(), (self.parent_path().parent_path() / "lib/weft").string());
}

TEST(RaiseDescriptorLimit, ReachesTheHardLimit) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{before.rlim_max / 2, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_EQ(raise_descriptor_limit(), std::nullopt);
  rlimit after{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_cur, before.rlim_max);
  EXPECT_EQ(after.rlim_max, before.rlim_max);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace weft::kit
