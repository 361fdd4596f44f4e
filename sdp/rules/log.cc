#include "sdp/rules/log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <utility>

#include "base/kept_errno.h"

namespace weft::sdp {
namespace {

constexpr mode_t kOthers = S_IRWXG | S_IRWXO;
constexpr int kNoFile = -1;

// A folder or file that nobody but this user can have made or may touch.
bool is_own(int fd, mode_t kind) {
  struct stat status {};
  return fstat(fd, &status) == 0 && (status.st_mode & S_IFMT) == kind &&
         status.st_uid == geteuid() && (status.st_mode & kOthers) == 0 &&
         (kind == S_IFDIR || status.st_nlink == 1);
}

int checked(int fd, mode_t kind) {
  if (fd == kNoFile || is_own(fd, kind)) return fd;
  close(fd);
  return kNoFile;
}

// All below the folder's descriptor, so that nothing can be put in its place in between.
int open_log(const LogPlace& place) {
  constexpr int kWrite = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  constexpr mode_t kOwn = S_IRUSR | S_IWUSR;
  if (place.folder.empty()) return checked(open(place.file.c_str(), kWrite, kOwn), S_IFREG);
  mkdir(place.folder.c_str(), S_IRWXU);
  const int folder =
      checked(open(place.folder.c_str(), O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), S_IFDIR);
  if (folder == kNoFile) return kNoFile;
  const int file = checked(openat(folder, place.file.c_str(), kWrite, kOwn), S_IFREG);
  close(folder);
  return file;
}

void write_line(int fd, std::string_view text) {
  // One call, so that lines of several processes stay whole.
  std::string line = "weft-sdp[" + std::to_string(getpid()) + "]: ";
  line += text;
  line += '\n';
  [[maybe_unused]] const ssize_t n = ::write(fd, line.data(), line.size());
}

int priority(LogLevel level) {
  if (level >= LogLevel::error) return LOG_ERR;
  if (level == LogLevel::warning) return LOG_WARNING;
  return level == LogLevel::summary ? LOG_INFO : LOG_DEBUG;
}

}  // namespace

LogPlace LogPlace::of(const std::string& name, uid_t user) {
  const bool absolute = name.starts_with('/');
  // "../x" stays below its folder.
  const std::string last = name.substr(name.rfind('/') + 1);
  if (user == 0) return {"", absolute ? name : "/var/log/" + last};
  return {(absolute ? name : "/tmp/" + last) + "." + std::to_string(user), "log"};
}

bool append_line(const LogPlace& place, std::string_view text) {
  const int fd = open_log(place);
  if (fd == kNoFile) return false;
  write_line(fd, text);
  close(fd);
  return true;
}

void SentenceLog::write(LogLevel level, std::string_view text) const {
  if (!wants(level)) return;
  const SameErrno same;
  switch (settings_.destination) {
    case LogSettings::Destination::standard_error:
      write_line(STDERR_FILENO, text);
      break;
    case LogSettings::Destination::syslog:
      syslog(priority(level), "weft-sdp: %.*s", static_cast<int>(text.size()), text.data());
      break;
    case LogSettings::Destination::file:
      // Of the user that the process is by now.
      append_line(LogPlace::of(settings_.file, geteuid()), text);
      break;
  }
}

}  // namespace weft::sdp
