#include "stream/output/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "kit/failure.h"

namespace weft::stream {
namespace {

// So many bytes at most wait in memory to be written by the kernel: ending a file takes no longer.
constexpr uint64_t kUnwritten = 8 << 20;

bool is_there(const std::string& path) {
  struct stat st {};
  return ::lstat(path.c_str(), &st) == 0;
}

// EINVAL: there is no disk behind it.
void sync(int fd, const std::string& what) {
  if (::fsync(fd) != 0 && errno != EINVAL) throw kit::system_failure(what);
}

constexpr const char* kRemedy = ": name another one ({time} and {number} in it do), or --overwrite";
[[noreturn]] void refuse(const std::string& name) {
  throw kit::Failure{name + " is there already" + kRemedy};
}
[[noreturn]] void refuse_part(const std::string& part) {
  throw kit::Failure{part + " is what a receiver left that was killed, or is being written" +
                     kRemedy};
}

bool is_at(const port::Fd& fd, const std::string& path) {
  struct stat opened {
  }, there{};
  return ::fstat(fd.get(), &opened) == 0 && ::stat(path.c_str(), &there) == 0 &&
         opened.st_dev == there.st_dev && opened.st_ino == there.st_ino;
}

// Empty, and nobody else's: its lock is there for as long as it is written. What a receiver left
// that was killed has none.
port::Fd open_part(const std::string& part, bool overwrite) {
  for (;;) {
    const int flags = O_RDWR | O_CREAT | O_CLOEXEC | (overwrite ? 0 : O_EXCL);
    port::Fd fd{::open(part.c_str(), flags, 0644)};
    if (!fd.valid() && errno == EEXIST) refuse_part(part);
    if (!fd.valid()) throw kit::system_failure(part);
    // Some file systems have no locks.
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      throw kit::Failure{part + " is written by another receiver"};
    }
    // Who had it before may have given it its name meanwhile.
    if (!is_at(fd, part)) continue;
    if (::ftruncate(fd.get(), 0) != 0) throw kit::system_failure(part);
    return fd;
  }
}

}  // namespace

bool OutputFile::exists(const std::string& name) {
  return is_there(name) || is_there(name + ".part");
}

void OutputFile::check_names(const FileName& name, uint32_t streams, bool overwrite) {
  const FileName folder = name.folder();
  for (uint32_t stream = 0; stream < streams; ++stream) {
    // What a time names is not known yet, and with a number another one is taken.
    if (!folder.tells_time()) {
      const std::string path = folder.of(stream, 0, 0);
      if (::access(path.c_str(), W_OK | X_OK) != 0) throw kit::system_failure(path);
    }
    if (name.tells_time() || name.tells_number() || overwrite) continue;
    const std::string first = name.of(stream, 0, 0);
    if (is_there(first)) refuse(first);
    if (is_there(first + ".part")) refuse_part(first + ".part");
  }
}

OutputFile::OutputFile(std::string name, bool overwrite)
    : name_(std::move(name)), part_(name_ + ".part"), overwrite_(overwrite) {
  if (!overwrite_ && is_there(name_)) refuse(name_);
  struct stat st {};
  if (::stat(name_.c_str(), &st) == 0 && !S_ISREG(st.st_mode)) {
    throw kit::Failure{name_ + " is no regular file: only blocks are written there"};
  }
  fd_ = open_part(part_, overwrite_);
}

void OutputFile::write(std::span<const std::byte> bytes, uint64_t at) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (n < 0 && errno != EINTR) throw kit::system_failure(part_);
    if (n <= 0) continue;
    bytes = bytes.subspan(static_cast<size_t>(n));
    at += static_cast<uint64_t>(n);
  }
}

void OutputFile::append(std::span<const std::byte> bytes) {
  write(bytes, size_);
  size_ += bytes.size();
  if (size_ - on_its_way_ < kUnwritten) return;
  // A wish: what it cannot do, the end of the file does.
  (void)::sync_file_range(fd_.get(), static_cast<off_t>(on_its_way_),
                          static_cast<off_t>(size_ - on_its_way_), SYNC_FILE_RANGE_WRITE);
  on_its_way_ = size_;
}

void OutputFile::rewrite_begin(std::span<const std::byte> bytes) {
  write(bytes, 0);
}

void OutputFile::finish(bool on_disk) {
  if (on_disk) sync(fd_.get(), part_);
  const unsigned flags = overwrite_ ? 0 : RENAME_NOREPLACE;
  int moved = ::renameat2(AT_FDCWD, part_.c_str(), AT_FDCWD, name_.c_str(), flags);
  // Some file systems know no flags.
  if (moved != 0 && errno == EINVAL && !is_there(name_)) {
    moved = ::rename(part_.c_str(), name_.c_str());
  }
  if (moved != 0) throw kit::system_failure(name_ + " (what was received is in " + part_ + ")");
  if (!on_disk) return;
  const std::filesystem::path folder = std::filesystem::absolute(name_).parent_path();
  const port::Fd names{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  // A folder that can be written and not read keeps the name when it likes.
  if (names.valid()) sync(names.get(), folder.string());
}

}  // namespace weft::stream
