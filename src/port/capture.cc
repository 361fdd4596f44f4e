#include "port/capture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>

#include "base/log.h"
#include "config/options.h"
#include "port/calls.h"
#include "port/memory_file.h"
#include "trace/pcapng.h"

namespace weft::port {
namespace {

constexpr mode_t kOwnerOnly = 0600;  // payload of the program is in it
constexpr int kMostNames = 1000;
constexpr uint64_t kMiB = 1024 * 1024;

// "t.pcapng", "t-2.pcapng", "t-3.pcapng".
std::string numbered(const std::string& name, int number) {
  if (number == 1) return name;
  const size_t folder = name.rfind('/');
  const size_t dot = name.rfind('.');
  const bool has_dot =
      dot != std::string::npos && (folder == std::string::npos || dot > folder + 1);
  const size_t at = has_dot ? dot : name.size();
  return name.substr(0, at) + "-" + std::to_string(number) + name.substr(at);
}

}  // namespace

std::string capture_name(const std::string& pattern, int pid) {
  std::string name;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern.compare(i, 2, "%p") == 0) {
      name += std::to_string(pid);
      ++i;
    } else {
      name += pattern[i];
    }
  }
  return name;
}

Capture::Capture(Settings settings)
    : settings_(std::move(settings)),
      most_(std::min(settings_.most, largest_file())),
      pid_(static_cast<int>(::getpid())) {}

Capture* Capture::of_process() {
  const config::Options& o = config::options();
  if (o.trace.empty()) return nullptr;
  static std::atomic<Capture*> g_capture{nullptr};
  Capture* known = g_capture.load(std::memory_order_acquire);
  if (known != nullptr && !known->inherited()) return known;
  // Two threads may come here at once, the slower one throws its own away: no file is open yet. No
  // lock, which another thread might hold while this one forks. A parent's is left as it is.
  auto fresh = std::make_unique<Capture>(
      Settings{.pattern = o.trace, .keep = o.trace_snap, .most = o.trace_size * kMiB});
  if (g_capture.compare_exchange_strong(known, fresh.get(), std::memory_order_acq_rel)) {
    return fresh.release();
  }
  return known;
}

// Before the lock is touched: in a child it may be held by a thread that is not there.
bool Capture::inherited() const {
  return pid_ != ::getpid();
}

bool Capture::claim(const trace::Endpoint& local, const trace::Endpoint& peer) {
  if (inherited()) return false;
  const std::lock_guard guard{lock_};
  if (local != peer && recorded_.contains({peer, local})) return false;
  recorded_.insert({local, peer});
  return true;
}

void Capture::release(const trace::Endpoint& local, const trace::Endpoint& peer) {
  if (inherited()) return;
  const std::lock_guard guard{lock_};
  recorded_.erase({local, peer});
}

void Capture::sends_from(const trace::Endpoint& local) {
  if (inherited()) return;
  const std::lock_guard guard{lock_};
  sources_.insert(local);
}

bool Capture::has_sent_from(const trace::Endpoint& source) {
  if (inherited()) return false;
  const std::lock_guard guard{lock_};
  return sources_.contains(source);
}

void Capture::packet(const trace::Packet& packet) {
  if (inherited()) return;
  const std::lock_guard guard{lock_};
  if (stopped_ || !(file_.valid() || open())) return;
  if (write(packet)) return;
  if (errno == EFAULT && packet.kept > 0) {
    // The program has unmapped its memory (design/06), after the kernel had the bytes.
    trace::Packet bare = packet;
    bare.kept = 0;
    if (write(bare)) return;
  }
  end_with(errno);
}

void Capture::give_up(int error) {
  if (inherited()) return;
  const std::lock_guard guard{lock_};
  end_with(error);
}

void Capture::end_with(int error) {
  if (!stopped_) {
    // Without memory there may be no name of a file yet.
    WEFT_LOG(error, "the trace %s cannot be written: %s; it ends here",
             (name_.empty() ? settings_.pattern : name_).c_str(), std::strerror(error));
  }
  stop();
}

// Never writes to a file that is there already, be it of another process, an earlier run or
// somebody else.
bool Capture::open() {
  const std::string wanted = capture_name(settings_.pattern, pid_);
  for (int i = 1; i <= kMostNames && !file_.valid(); ++i) {
    name_ = numbered(wanted, i);
    file_ = raise(Fd{calls::open(
        name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kOwnerOnly)});
    if (!file_.valid() && errno != EEXIST) break;
  }
  if (!file_.valid()) {
    WEFT_LOG(error, "there will be no trace: %s: %s; set WEFT_TRACE to a name that can be created",
             name_.c_str(), std::strerror(errno));
    stop();
    return false;
  }
  const std::vector<std::byte> head =
      trace::file_head("process " + std::to_string(pid_) + ", " + program_invocation_short_name);
  pieces_.assign(1, {const_cast<std::byte*>(head.data()), head.size()});
  if (const int error = write_pieces(head.size()); error != 0) {
    WEFT_LOG(error, "the trace %s cannot be written: %s", name_.c_str(), std::strerror(error));
    stop();
    return false;
  }
  size_ = head.size();
  WEFT_LOG(info, "this process writes its trace to %s", name_.c_str());
  return true;
}

// False with errno set when it could not be written; then nothing of it is in the file.
bool Capture::write(const trace::Packet& packet) {
  const trace::BlockEnds ends{packet};
  if (size_ + ends.block_size() > most_) {
    WEFT_LOG(warn,
             "the trace %s is full at %llu MiB; see WEFT_TRACE_SIZE, WEFT_TRACE_SNAP and ulimit -f",
             name_.c_str(), static_cast<unsigned long long>(most_ / kMiB));
    stop();
    return true;
  }
  const auto add = [this](Bytes b) {
    if (!b.empty()) pieces_.push_back({const_cast<std::byte*>(b.data()), b.size()});
  };
  pieces_.clear();
  add(ends.front());
  add(packet.headers);
  size_t left = packet.kept;
  for (const IoVec& piece : packet.payload) {
    const size_t n = std::min(left, piece.iov_len);
    add({static_cast<const std::byte*>(piece.iov_base), n});
    left -= n;
  }
  add(ends.back());
  errno = write_pieces(ends.block_size());
  if (errno == 0) {
    size_ += ends.block_size();
    return true;
  }
  return false;
}

// Behind what is in the file. 0, or the errno; then nothing of it stays there.
int Capture::write_pieces(size_t bytes) {
  size_t done = 0;
  for (size_t first = 0; done < bytes;) {
    const auto n = static_cast<int>(std::min<size_t>(pieces_.size() - first, IOV_MAX));
    const ssize_t written =
        calls::pwritev(file_.get(), &pieces_[first], n, static_cast<off_t>(size_ + done));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int error = written < 0 ? errno : EIO;
      (void)::ftruncate(file_.get(), static_cast<off_t>(size_));
      return error;
    }
    done += static_cast<size_t>(written);
    for (auto left = static_cast<size_t>(written); left > 0;) {
      IoVec& piece = pieces_[first];
      const size_t part = std::min(left, piece.iov_len);
      piece.iov_base = static_cast<std::byte*>(piece.iov_base) + part;
      piece.iov_len -= part;
      left -= part;
      if (piece.iov_len == 0) ++first;
    }
  }
  return 0;
}

void Capture::stop() {
  stopped_ = true;
  file_.reset();
}

}  // namespace weft::port
