#include "measure/meter.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <sstream>
#include <thread>

#include "measure/files.h"
#include "port/fd.h"
#include "tests/unit/measure/fake_tree.h"

namespace weft::measure {
namespace {

using ::testing::HasSubstr;

// A real command, which ends when it is told to; all that is read of it is in a tree of the test's.
class MeterTest : public ::testing::Test {
 protected:
  MeterTest() {
    for (const auto& [file, text] :
         {std::pair{"type", "Battery"}, {"status", "Discharging"}, {"power_now", "8000000"}}) {
      sys_.write(std::string{kBattery} + file, text);
    }
    machine_did(100);
  }

  // Nothing is counted by time: between the first look and the last one there is none.
  MeterSetting setting(std::FILE* samples) const {
    return {.interval = std::chrono::hours{1},
            .energy = {EnergyChoice::battery},
            .roots = {.sysfs = sys_.root(), .proc = proc_.root()},
            .bytes = std::nullopt,
            .interface = Interface{.name = "eth0", .sent = false},
            .samples = samples};
  }
  void arrived(uint64_t bytes) const {
    proc_.write("self/net/dev", fmt::format("  eth0:{} 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0", bytes));
  }
  void machine_did(unsigned ticks) const {
    proc_.write("stat", fmt::format("cpu  {0} 0 0 5 0 0 0 0 0 0\ncpu0 {0} 0 0 5 0 0 0 0 0 0\n"
                                    "ctxt 9",
                                    ticks));
  }
  pid_t start_command() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
    const port::Fd from{ends[0]};
    to_command_ = port::Fd{ends[1]};
    const pid_t pid = ::fork();
    if (pid == 0) {
      to_command_.reset();
      char none = 0;
      (void)!::read(from.get(), &none, 1);
      ::_exit(3);
    }
    command_ = pid;
    return pid;
  }
  // Leaves it to the meter to take its status, which end() does without waiting.
  void end_command() {
    to_command_.reset();
    siginfo_t how{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(command_), &how, WEXITED | WNOWAIT), 0);
  }
  std::string samples_file() const { return sys_.root() + "/samples"; }
  // Once a look has written so many. It does that at its end.
  std::vector<nlohmann::json> samples(size_t number) const {
    std::vector<nlohmann::json> lines;
    while (lines.size() < number) {
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
      lines.clear();
      std::istringstream in{*read_text(samples_file())};
      for (std::string line; std::getline(in, line);) {
        lines.push_back(nlohmann::json::parse(line, nullptr, false));
      }
    }
    return lines;
  }

  static constexpr const char* kBattery = "class/power_supply/BAT0/";
  FakeTree proc_;
  FakeTree sys_;
  port::Fd to_command_;
  pid_t command_ = -1;
};

TEST_F(MeterTest, ACounterThatBeginsAnewHasNoRateAndNoSum) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{
      std::fopen(samples_file().c_str(), "we"), std::fclose};
  arrived(1000);
  Meter meter{setting(file.get())};
  meter.begin();
  arrived(400);
  meter.watch(start_command(), 0);
  EXPECT_TRUE(samples(1)[0]["gbps"].is_null());
  arrived(5000);  // more than at the beginning: the end alone would not tell
  end_command();
  const Report report = meter.end();
  EXPECT_EQ(report.exit_status, 3);
  const auto lines = samples(2);
  const double span = lines[1]["t"].get<double>() - lines[0]["t"].get<double>();
  EXPECT_NEAR(lines[1]["gbps"].get<double>() * span, 4600 * 8e-9, 46 * 8e-9);
  ASSERT_FALSE(report.bytes);
  EXPECT_THAT(report.bytes.error().reason, HasSubstr("went back"));
}

TEST_F(MeterTest, WhatHappensWhileASourceOfEnergyAnswersIsNotTheCommands) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{
      std::fopen(samples_file().c_str(), "we"), std::fclose};
  arrived(1000);
  Meter meter{setting(file.get())};
  meter.begin();
  meter.watch(start_command(), 0);
  (void)samples(1);
  arrived(1700);
  machine_did(400);
  // Whoever reads its power now waits until it is written.
  const std::string power = sys_.root() + "/" + kBattery + "power_now";
  ASSERT_EQ(::unlink(power.c_str()), 0);
  ASSERT_EQ(::mkfifo(power.c_str(), 0600), 0);
  std::thread slow{[this, &power] {
    const port::Fd to{::open(power.c_str(), O_WRONLY | O_CLOEXEC)};
    arrived(9'000'000);
    machine_did(90'000);
    (void)!::write(to.get(), "8000000\n", 8);
  }};
  end_command();
  const Report report = meter.end();
  slow.join();
  ASSERT_TRUE(report.bytes);
  EXPECT_EQ(*report.bytes, 700U);
  ASSERT_TRUE(report.machine);
  EXPECT_DOUBLE_EQ(report.machine->user_s, 300.0 / static_cast<double>(sysconf(_SC_CLK_TCK)));
}

TEST_F(MeterTest, SamplesThatCannotBeWrittenEnd) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> full{std::fopen("/dev/full", "we"),
                                                             std::fclose};
  ASSERT_TRUE(full);
  // So that each write fails at once.
  ASSERT_EQ(std::setvbuf(full.get(), nullptr, _IONBF, 0), 0);
  arrived(1000);
  Meter meter{setting(full.get())};
  meter.begin();
  meter.watch(start_command(), 0);
  end_command();
  const Report report = meter.end();
  EXPECT_EQ(report.exit_status, 3);
  ASSERT_TRUE(report.samples_end);
  EXPECT_THAT(report.samples_end->reason, HasSubstr("No space left on device"));
}

}  // namespace
}  // namespace weft::measure
