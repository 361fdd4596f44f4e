#include "stream/recording/read_ahead.h"

#include <algorithm>
#include <chrono>

#include "bench/failure.h"
#include "cli/stop.h"

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

// False at the end. What was read before an error is there.
bool ReadAhead::fill(std::vector<std::byte>& piece, std::string& error) {
  piece.resize(kPiece);
  size_t size = 0;
  bool more = true;
  try {
    while (more && size < kPiece) {
      const size_t n = input_->read(std::span{piece}.subspan(size));
      more = n > 0;
      size += n;
    }
  } catch (const bench::Failure& failure) {
    error = failure.what();
    more = false;
  }
  piece.resize(size);
  return more;
}

void ReadAhead::work() {
  bool more = true;
  while (more) {
    std::vector<std::byte> piece;
    std::string error;
    more = fill(piece, error);
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return stopping_ || pieces_.size() < kPieces; });
    if (stopping_) return;
    if (!piece.empty()) pieces_.push_back(std::move(piece));
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
        if (!error_.empty()) throw bench::Failure{error_};
        return done;
      }
      piece_ = std::move(pieces_.front());
      pieces_.pop_front();
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
