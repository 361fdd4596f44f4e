#include "bench/machine.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>

namespace weft::bench {
namespace {

std::string cpu_model() {
  std::ifstream in{"/proc/cpuinfo"};
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "unknown";
}

std::string first_line(const char* file) {
  std::ifstream in{file};
  std::string line;
  std::getline(in, line);
  return line;
}

std::map<std::string, std::string> weft_variables() {
  std::map<std::string, std::string> found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (text.starts_with("WEFT_") && equals != std::string::npos) {
      found[text.substr(0, equals)] = text.substr(equals + 1);
    }
  }
  return found;
}

}  // namespace

Machine this_machine() {
  utsname name{};
  uname(&name);
  return {.cpu = cpu_model(),
          .cpus = static_cast<unsigned>(sysconf(_SC_NPROCESSORS_ONLN)),
          .kernel = name.release,
          .congestion = first_line("/proc/sys/net/ipv4/tcp_congestion_control"),
          .load_before = load_average(),
          .load_after = 0,
          .options = weft_variables()};
}

double load_average() {
  std::array<double, 1> load{};
  return getloadavg(load.data(), 1) == 1 ? load[0] : 0;
}

}  // namespace weft::bench
