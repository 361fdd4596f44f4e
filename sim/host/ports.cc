#include "sim/host/ports.h"

#include <algorithm>
#include <cerrno>

#include "base/draw.h"

namespace weft::sim {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kShortRead = 70'000;  // bytes, at most

size_t copy_to(std::span<const IoVec> pieces, Bytes from) {
  const size_t all = from.size();
  for (const IoVec& v : pieces) {
    const Bytes part = from.first(std::min(v.iov_len, from.size()));
    std::copy(part.begin(), part.end(), static_cast<std::byte*>(v.iov_base));
    from = from.subspan(part.size());
  }
  return all - from.size();
}

}  // namespace

// --- streams

SimStream::SimStream(Runtime& runtime, StreamEnd& end, const Options& options)
    : runtime_(runtime),
      end_(end),
      options_(options),
      random_(options.seed),
      fd_(runtime.open(*this)) {
  end_.on_event([this] {
    if (!closed()) {
      runtime_.changed();
    } else if (end_.readable() > 0) {
      end_.reset();
    }
  });
}

SimStream::~SimStream() {
  end_.on_event({});
  if (!closed()) leave();
}

void SimStream::leave() {
  runtime_.close(fd_);
  fd_ = -1;
}

port::ByteStream::Transfer SimStream::send(std::span<const IoVec> pieces) const {
  if (end_.was_reset()) return {.error = ECONNRESET};
  std::vector<Bytes> all;
  for (const IoVec& v : pieces) {
    all.emplace_back(static_cast<const std::byte*>(v.iov_base), v.iov_len);
  }
  const size_t n = end_.write(all);
  return {.bytes = n, .would_block = n == 0};
}

bool SimStream::readable() const {
  return !deaf_ && (end_.readable() > 0 || end_.fin_received() || end_.was_reset());
}

port::ByteStream::Transfer SimStream::receive(std::span<const IoVec> pieces) const {
  if (deaf_) return {.would_block = true};
  std::vector<MutableBytes> all;
  size_t left =
      draw_chance(random_, options_.short_read) ? draw_size(random_, kShortRead) : SIZE_MAX;
  for (const IoVec& v : pieces) {
    const size_t n = std::min(v.iov_len, left);
    all.emplace_back(static_cast<std::byte*>(v.iov_base), n);
    left -= n;
  }
  if (const size_t n = end_.read(all); n > 0) return {.bytes = n};
  if (end_.was_reset()) return {.error = ECONNRESET};
  if (end_.fin_received()) return {.end = true};
  return {.would_block = true};
}

void SimStream::reset() {
  closed_by_reset_ = true;
  end_.reset();
  if (!closed()) leave();
}

void SimStream::close() {
  if (closed()) return;
  if (end_.readable() > 0) {
    end_.reset();
  } else {
    end_.shutdown_write();
  }
  leave();
}

void SimStream::set_deaf(bool on) {
  deaf_ = on;
  if (!on && !closed()) runtime_.changed();
}

// --- datagrams

SimDatagrams::SimDatagrams(Runtime& runtime, DatagramEnd& end, const Options& options)
    : runtime_(runtime),
      end_(end),
      options_(options),
      random_(options.seed),
      fd_(runtime.open(*this)),
      room_(runtime.scheduler(), [this] {
        full_ = false;
        runtime_.changed();
      }) {
  end_.on_event([this] { runtime_.changed(); });
}

SimDatagrams::~SimDatagrams() {
  close();
}

void SimDatagrams::close() {
  if (fd_ < 0) return;
  end_.on_event({});
  runtime_.close(fd_);
  fd_ = -1;
}

port::DatagramPort::Sent SimDatagrams::send(const Train& train, port::Segmentation&) {
  if (full_ || draw_chance(random_, options_.stall)) {
    full_ = true;
    if (!room_.is_set()) room_.set(runtime_.now() + 1us + draw_up_to(random_, 50us));
    return {.would_block = true};
  }
  std::vector<std::byte> all;
  for (const IoVec& v : train.pieces) {
    const auto* p = static_cast<const std::byte*>(v.iov_base);
    all.insert(all.end(), p, p + v.iov_len);
  }
  Sent sent;
  while (sent.bytes < all.size()) {
    const size_t n = std::min(std::max<size_t>(train.segment, 1), all.size() - sent.bytes);
    if (!end_.send(Bytes{all}.subspan(sent.bytes, n))) {
      sent.too_big = true;
      return sent;
    }
    sent.bytes += n;
  }
  return sent;
}

// Is there one more?
bool SimDatagrams::next() {
  while (auto d = end_.receive()) arrived_.push_back(std::move(*d));
  return !arrived_.empty();
}

port::DatagramPort::Received SimDatagrams::described(size_t bytes, size_t segment) const {
  return {.bytes = bytes,
          .segment = segment,
          .from = options_.peer,
          .to = options_.own.gid(),
          .hop_limit = 64};
}

port::DatagramPort::Received SimDatagrams::receive(MutableBytes buffer) {
  if (!next()) return {.would_block = true};
  const size_t segment = arrived_.front().size();
  size_t bytes = 0;
  for (;;) {
    const std::vector<std::byte> d = std::move(arrived_.front());
    arrived_.pop_front();
    std::copy(d.begin(), d.end(), buffer.begin() + static_cast<ptrdiff_t>(bytes));
    bytes += d.size();
    // As UDP_GRO: equal ones, and a shorter one at the end.
    if (d.size() < segment || segment == 0 || arrived_.empty()) break;
    const size_t following = arrived_.front().size();
    if (following > segment || following == 0 || bytes + following > 65'000 ||
        !draw_chance(random_, options_.joined)) {
      break;
    }
  }
  return described(bytes, segment);
}

std::optional<port::DatagramPort::Received> SimDatagrams::look(MutableBytes front) {
  if (!options_.looks) return {};
  if (!next()) return Received{.would_block = true};
  const auto& d = arrived_.front();
  std::copy_n(d.begin(), std::min(d.size(), front.size()), front.begin());
  return described(d.size(), d.size());
}

port::DatagramPort::Received SimDatagrams::receive_into(std::span<const IoVec> pieces) {
  if (!next()) return {.would_block = true};
  const std::vector<std::byte> d = std::move(arrived_.front());
  arrived_.pop_front();
  const size_t n = copy_to(pieces, d);
  Received r = described(n, n);
  r.truncated = n < d.size();
  return r;
}

}  // namespace weft::sim
