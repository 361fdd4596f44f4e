#include "measure/ipmi.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <string_view>

#include "measure/power_integral.h"
#include "port/fd.h"

namespace weft::measure {
namespace {

constexpr double kLongest = 2;   // seconds for one answer
constexpr double kInterval = 1;  // seconds; controllers have nothing new more often

constexpr const char* kPrepare =
    "as root: install ipmitool, modprobe ipmi_devintf ipmi_si; the machine has to have a "
    "management "
    "controller that knows DCMI";

// The command's standard input and errors.
class Actions {
 public:
  explicit Actions(int output) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, output, STDERR_FILENO);
  }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
  ~Actions() { posix_spawn_file_actions_destroy(&actions_); }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

// Everything up to the end. False when that does not come in time.
bool read_to_end(int fd, double seconds, std::string& text) {
  const double until = boot_time() + seconds;
  for (;;) {
    const double left = until - boot_time();
    pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
    if (left <= 0) return false;
    if (::poll(&wait, 1, static_cast<int>(left * 1000) + 1) <= 0) continue;
    std::array<char, 1024> piece{};
    const ssize_t got = ::read(fd, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    text.append(piece.data(), static_cast<size_t>(got));
  }
}

// Without the empty lines that it prints in front.
std::string first_line(const std::string& text) {
  const size_t begin = std::min(text.find_first_not_of(" \n"), text.size());
  return text.substr(begin, text.find('\n', begin) - begin);
}

Measured<double> read_watts() {
  const auto output = output_of({"ipmitool", "dcmi", "power", "reading"}, kLongest);
  if (!output) return fail(output.error());
  return dcmi_watts(*output);
}

class Ipmi final : public EnergySource {
 public:
  const char* name() const override { return "ipmi"; }
  void sample(const Clock& clock) override {
    if (!integral_.empty() && clock() - integral_.last_s() < kInterval) {
      integral_.extend(clock());
      return;
    }
    const auto watts = read_watts();
    integral_.add(clock(), watts);
  }
  void reset() override { integral_.reset(); }
  std::vector<DomainEnergy> domains() const override {
    return {{"machine", Part::machine, integral_.joules()}};
  }
  double seconds() const override { return integral_.seconds(); }
  Measured<double> watts() const override { return integral_.watts(); }

 private:
  PowerIntegral integral_;
};

}  // namespace

Measured<double> dcmi_watts(const std::string& output) {
  constexpr std::string_view kLabel = "Instantaneous power reading:";
  const size_t label = output.find(kLabel);
  if (label == std::string::npos) {
    return fail(Unmeasured{fmt::format("ipmitool dcmi power reading says: {}",
                                       first_line(output).empty() ? "nothing" : first_line(output)),
                           kPrepare});
  }
  const size_t number = output.find_first_not_of(' ', label + kLabel.size());
  double watts = 0;
  if (number != std::string::npos) {
    const char* end = output.data() + output.size();
    (void)std::from_chars(output.data() + number, end, watts);
  }
  if (watts > 0) return watts;
  return fail(Unmeasured{"the management controller measures no power (it says 0 W)",
                         "measure by another source, or at the plug"});
}

Measured<std::string> output_of(const std::vector<std::string>& command, double seconds) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fail(Unmeasured{fmt::format("pipe: {}", std::strerror(errno)), "raise ulimit -n"});
  }
  const port::Fd from{ends[0]};
  port::Fd to{ends[1]};
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_t pid = -1;
  const Actions actions{to.get()};
  const int error = ::posix_spawnp(&pid, words[0], actions.get(), nullptr, words.data(), environ);
  if (error != 0) {
    return fail(Unmeasured{fmt::format("{}: {}", command[0], std::strerror(error)), kPrepare});
  }
  to.reset();
  std::string text;
  const bool ended = read_to_end(from.get(), seconds, text);
  if (!ended) ::kill(pid, SIGKILL);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (ended) return text;
  return fail(Unmeasured{fmt::format("{} gave no answer within {:.3g} s", command[0], seconds),
                         "look at the management controller: ipmitool mc info"});
}

OpenSource open_ipmi() {
  const auto watts = read_watts();
  if (!watts) return fail(watts.error());
  return std::unique_ptr<EnergySource>(new Ipmi);
}

}  // namespace weft::measure
