#include "sdp/rules/load.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "base/result.h"

namespace weft::sdp {
namespace {

// More would be another kind of file.
constexpr size_t kMostBytes = size_t{1} << 20;

std::string reason(int error) {
  return std::generic_category().message(error);
}

// The error is a sentence. A file that is not there and that nobody named is an empty one.
Result<std::string, std::string> read_file(const std::string& name, bool has_to_be_there) {
  // Without O_NONBLOCK a pipe of this name would stop the program in its first call.
  const int fd = open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    if (errno == ENOENT && !has_to_be_there) return std::string{};
    return fail("cannot be opened: " + reason(errno) +
                "; without it SDP is tried for all sockets, and TCP where there is none");
  }
  std::string text;
  struct stat status {};
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(fd);
    return fail(std::string{"is no file of rules; name one in LIBSDP_CONFIG_FILE"});
  }
  char part[4096];
  ssize_t n = 0;
  while ((n = read(fd, part, sizeof part)) > 0 && text.size() <= kMostBytes) text.append(part, n);
  const int error = errno;
  close(fd);
  if (n < 0) return fail("cannot be read: " + reason(error));
  if (text.size() > kMostBytes)
    return fail(std::string{"has more than 1 MiB, which is no file of rules"});
  return text;
}

bool is_set(const char* variable) {
  return secure_getenv(variable) != nullptr;
}

}  // namespace

RulesEnvironment RulesEnvironment::of_process() {
  RulesEnvironment environment;
  if (const char* const file = secure_getenv("LIBSDP_CONFIG_FILE");
      file != nullptr && *file != '\0') {
    environment.file = file;
    environment.file_is_named = true;
  }
  environment.always_sdp = is_set("SIMPLE_LIBSDP") || is_set("ALWAYS_USE_SDP");
  return environment;
}

LoadedRules load_rules(const RulesEnvironment& environment) {
  LoadedRules loaded;
  if (environment.always_sdp) {
    loaded.configuration.rules = Rules{Use::sdp};
    return loaded;
  }
  const auto text = read_file(environment.file, environment.file_is_named);
  loaded.file = environment.file;
  if (text) {
    loaded.configuration = parse(*text);
  } else {
    loaded.configuration.complaints.push_back({0, text.error()});
  }
  return loaded;
}

std::string sentence(const std::string& file, const Complaint& complaint) {
  const std::string line = complaint.line == 0 ? "" : std::to_string(complaint.line) + ":";
  return file + ":" + line + " " + complaint.text;
}

}  // namespace weft::sdp
