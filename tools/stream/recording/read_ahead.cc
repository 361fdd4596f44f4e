#include "stream/recording/read_ahead.h"

#include <algorithm>
#include <chrono>

#include "cli/stop.h"
#include "kit/failure.h"

namespace weft::stream {

ReadAhead::ReadAhead(std::unique_ptr<ByteInput> input)
    : input_(std::move(input)), thread_([this] { work(); }) {}

ReadAhead::~ReadAhead() {
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
  }
  input_->stop();
  changed_.notify_all();
  thread_.join();
}

// What comes is handed on at once: the other end of a pipe may wait before it writes more.
void ReadAhead::work() {
  std::vector<std::byte> buffer(kPiece);
  bool more = true;
  while (more) {
    size_t n = 0;
    std::string error;
    try {
      n = input_->read(buffer);
    } catch (const kit::Failure& failure) {
      error = failure.what();
    }
    more = n > 0;
    const auto begin = buffer.begin();
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return stopping_ || ahead_ < kMostAhead; });
    if (stopping_) return;
    if (more) pieces_.emplace_back(begin, begin + static_cast<ptrdiff_t>(n));
    ahead_ += n;
    error_ = error;
    ended_ = !more;
    changed_.notify_all();
  }
}

size_t ReadAhead::read(std::span<std::byte> to) {
  size_t done = 0;
  while (done < to.size()) {
    if (at_ == piece_.size()) {
      std::unique_lock lock{mutex_};
      const auto ready = [&] { return !pieces_.empty() || ended_; };
      while (!changed_.wait_for(lock, std::chrono::milliseconds{50}, ready)) {
        if (cli::stop_asked()) return done;
      }
      if (pieces_.empty()) {
        if (!error_.empty()) throw kit::Failure{error_};
        return done;
      }
      piece_ = std::move(pieces_.front());
      pieces_.pop_front();
      ahead_ -= piece_.size();
      at_ = 0;
      changed_.notify_all();
    }
    const size_t n = std::min(to.size() - done, piece_.size() - at_);
    std::copy_n(piece_.begin() + static_cast<ptrdiff_t>(at_), n,
                to.begin() + static_cast<ptrdiff_t>(done));
    at_ += n;
    done += n;
  }
  return done;
}

}  // namespace weft::stream
