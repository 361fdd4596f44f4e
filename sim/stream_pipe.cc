#include "sim/stream_pipe.h"

#include <algorithm>
#include <utility>

#include "sim/draw.h"

namespace weft::sim {
namespace {

constexpr Duration kInstant{1};
constexpr uint64_t kMostRandomSegment = 64 * 1024;
constexpr double kGlued = 0.25;

size_t total(std::span<const Bytes> pieces) {
  size_t n = 0;
  for (const Bytes piece : pieces) n += piece.size();
  return n;
}

}  // namespace

StreamPipe::StreamPipe(Scheduler& scheduler, Random& random, const StreamOptions& options,
                       Callbacks callbacks)
    : scheduler_(scheduler),
      random_(random),
      options_(options),
      callbacks_(std::move(callbacks)),
      arrival_(scheduler, [this] { arrive(); }),
      acknowledgement_(scheduler,
                       [this] {
                         acknowledged_ = read_;
                         wake_writer();
                       }),
      wake_writer_(scheduler, [this] { wake_writer(); }) {}

size_t StreamPipe::room() const {
  if (fin_written_ || mode_ == Mode::closed) return 0;
  return options_.window - (written_ - acknowledged_);
}

size_t StreamPipe::write(std::span<const Bytes> pieces) {
  const size_t offered = total(pieces);
  const size_t space = room();
  size_t n = std::min(offered, space);
  if (draw_chance(random_, options_.short_write) && n > 1) n = 1 + draw_below(random_, n - 1);
  if (fin_written_ || mode_ == Mode::closed) return 0;
  if (mode_ == Mode::vanish) return offered;
  if (n < offered) {
    writer_waits_ = true;
    if (n < space) wake_writer_.set(scheduler_.now() + kInstant);
  }
  size_t left = n;
  for (const Bytes piece : pieces) {
    const Bytes part = piece.first(std::min(left, piece.size()));
    bytes_.insert(bytes_.end(), part.begin(), part.end());
    left -= part.size();
  }
  written_ += n;
  if (mode_ == Mode::open) send_segments();
  return n;
}

void StreamPipe::write_fin() {
  if (fin_written_) return;
  fin_written_ = true;
  if (mode_ == Mode::open) send(written_, true);
}

uint64_t StreamPipe::segment_size(uint64_t left) {
  switch (options_.segmentation) {
    case Segmentation::whole:
      return left;
    case Segmentation::bytewise:
      return 1;
    case Segmentation::random:
      return std::min(left, draw_size(random_, kMostRandomSegment));
    case Segmentation::mss:
      return std::min<uint64_t>(left, options_.mss);
  }
  return left;
}

void StreamPipe::send_segments() {
  if (options_.segmentation == Segmentation::random && draw_chance(random_, kGlued) &&
      !segments_.empty() && sent_ < written_) {
    sent_ += segment_size(written_ - sent_);
    segments_.back().end = sent_;
  }
  while (sent_ < written_) {
    sent_ += segment_size(written_ - sent_);
    send(sent_, false);
  }
}

void StreamPipe::send(uint64_t end, bool fin) {
  last_arrival_ = std::max(scheduler_.now() + travel(), last_arrival_ + kInstant);
  segments_.push_back({last_arrival_, end, fin});
  if (!arrival_.is_set()) arrival_.set(segments_.front().arrival);
}

Duration StreamPipe::travel() {
  return std::max(kInstant, options_.delay + draw_up_to(random_, options_.jitter));
}

void StreamPipe::arrive() {
  const Segment segment = segments_.front();
  segments_.pop_front();
  const uint64_t before = arrived_;
  if (!cut_ || segment.end < cut_->after) {
    arrive_bytes(segment.end);
    fin_arrived_ = fin_arrived_ || segment.fin;
    if (!segments_.empty()) arrival_.set(segments_.front().arrival);
  } else {
    arrive_bytes(std::max(arrived_, cut_->after));
    const Cut kind = cut_->kind;
    cut_.reset();
    callbacks_.cut(kind);
    if (kind == Cut::silence && arrived_ == before) return;
  }
  callbacks_.arrived();
}

void StreamPipe::arrive_bytes(uint64_t end) {
  for (auto it = corrupt_.lower_bound(arrived_); it != corrupt_.end() && it->first < end; ++it) {
    bytes_[it->first - base_] ^= it->second;
  }
  arrived_ = end;
}

size_t StreamPipe::read(std::span<const MutableBytes> pieces) {
  size_t n = 0;
  for (const MutableBytes piece : pieces) {
    const size_t part = std::min<size_t>(piece.size(), arrived_ - read_);
    std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(read_ - base_), part, piece.begin());
    read_ += part;
    n += part;
  }
  if (n == 0) return 0;
  if (mode_ == Mode::open && !acknowledgement_.is_set()) {
    acknowledgement_.set(scheduler_.now() + travel());
  }
  // What was read is dropped when it is the larger part, so that each byte is moved about once.
  if (read_ - base_ > bytes_.size() / 2) {
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<ptrdiff_t>(read_ - base_));
    base_ = read_;
  }
  return n;
}

void StreamPipe::wake_writer() {
  if (!writer_waits_ || room() == 0) return;
  writer_waits_ = false;
  callbacks_.writable();
}

void StreamPipe::cut_after(uint64_t bytes, Cut kind) {
  if (mode_ != Mode::open) return;
  cut_ = PendingCut{bytes, kind};
  if (arrived_ < bytes) return;
  segments_.push_front({scheduler_.now(), arrived_, false});
  arrival_.set(scheduler_.now());
}

void StreamPipe::stop(Cut kind) {
  segments_.clear();
  arrival_.cancel();
  acknowledgement_.cancel();
  cut_.reset();
  if (mode_ == Mode::closed) return;
  switch (kind) {
    case Cut::fin:
      mode_ = Mode::vanish;
      acknowledged_ = written_;
      if (writer_waits_) wake_writer_.set(scheduler_.now() + kInstant);
      break;
    case Cut::reset:
      mode_ = Mode::closed;
      break;
    case Cut::silence:
      mode_ = Mode::silent;
      break;
  }
}

void StreamPipe::end() {
  stop(Cut::fin);
  fin_arrived_ = true;
}

}  // namespace weft::sim
