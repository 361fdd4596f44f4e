#include "stream/recording/byte_input.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <atomic>
#include <cerrno>
#include <vector>

#include "kit/failure.h"
#include "port/fd.h"

namespace weft::stream {
namespace {

constexpr int kLookMs = 50;  // at whether it is to stop

class PlainInput final : public ByteInput {
 public:
  PlainInput(const std::string& path, uint64_t offset)
      : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat st {};
    if (!fd_.valid() || ::fstat(fd_.get(), &st) != 0) throw kit::system_failure(path);
    may_wait_ = !S_ISREG(st.st_mode);
    if (offset > 0 && ::lseek(fd_.get(), static_cast<off_t>(offset), SEEK_SET) < 0) {
      throw kit::system_failure(path);
    }
    if (!may_wait_) (void)::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  }
  size_t read(std::span<std::byte> to) override {
    while (wait()) {
      const ssize_t n = ::read(fd_.get(), to.data(), to.size());
      if (n >= 0) return static_cast<size_t>(n);
      if (errno != EINTR) throw kit::system_failure(path_);
    }
    return 0;
  }
  void stop() override { stopped_ = true; }

 private:
  bool wait() const {
    while (!stopped_ && may_wait_) {
      pollfd p{.fd = fd_.get(), .events = POLLIN, .revents = 0};
      if (::poll(&p, 1, kLookMs) > 0) return true;
    }
    return !stopped_;
  }

  const std::string path_;
  port::Fd fd_;
  bool may_wait_ = false;
  std::atomic<bool> stopped_{false};
};

class ZstdInput final : public ByteInput {
 public:
  explicit ZstdInput(const std::string& path)
      : path_(path), file_(path, 0), stream_(ZSTD_createDStream()), buffer_(ZSTD_DStreamInSize()) {
    if (stream_ == nullptr) throw kit::Failure{path + ": no memory to decompress it"};
    // As the recorders' `zstd --long` has it; refused else, to protect those who have less memory.
    (void)ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, 31);
  }
  ~ZstdInput() override { ZSTD_freeDStream(stream_); }
  size_t read(std::span<std::byte> to) override {
    ZSTD_outBuffer out{.dst = to.data(), .size = to.size(), .pos = 0};
    while (out.pos == 0) {
      // What is finished inside may still have bytes to give.
      if (in_.pos == in_.size && !more_inside_) {
        in_ = {.src = buffer_.data(), .size = file_.read(buffer_), .pos = 0};
        if (in_.size == 0) break;
      }
      const size_t result = ZSTD_decompressStream(stream_, &out, &in_);
      if (ZSTD_isError(result) != 0) {
        throw kit::Failure{path_ + " cannot be decompressed: " + ZSTD_getErrorName(result)};
      }
      more_inside_ = out.pos == out.size;
    }
    return out.pos;
  }
  void stop() override { file_.stop(); }

 private:
  const std::string path_;
  PlainInput file_;
  ZSTD_DStream* stream_;
  std::vector<std::byte> buffer_;
  ZSTD_inBuffer in_{};
  bool more_inside_ = false;
};

}  // namespace

bool is_compressed(const std::string& path) {
  return path.ends_with(".zst");
}

std::unique_ptr<ByteInput> open_input(const std::string& path, uint64_t offset) {
  if (is_compressed(path)) return std::make_unique<ZstdInput>(path);
  return std::make_unique<PlainInput>(path, offset);
}

}  // namespace weft::stream
