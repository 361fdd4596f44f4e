#include "sim/stream_link.h"

namespace weft::sim {

size_t StreamEnd::write(std::span<const Bytes> pieces) {
  return out_->write(pieces);
}
size_t StreamEnd::writable() const {
  return out_->room();
}
size_t StreamEnd::readable() const {
  return own_reset_ ? 0 : in_->readable();
}
size_t StreamEnd::read(std::span<const MutableBytes> pieces) {
  return own_reset_ ? 0 : in_->read(pieces);
}
bool StreamEnd::fin_received() const {
  return !own_reset_ && in_->fin_arrived();
}
void StreamEnd::shutdown_write() {
  out_->write_fin();
}

void StreamEnd::reset() {
  if (reset_) return;
  reset_ = own_reset_ = true;
  out_->close_writer();
  send_reset_();
}

StreamLink::StreamLink(Scheduler& scheduler, uint64_t seed, const StreamOptions& options)
    : scheduler_(scheduler),
      random_(seed),
      options_(options),
      a_to_b_(scheduler, random_, options_, callbacks(a_to_b_, a_, b_)),
      b_to_a_(scheduler, random_, options_, callbacks(b_to_a_, b_, a_)),
      reset_of_a_(scheduler, [this] { reset_arrives(a_); }),
      reset_of_b_(scheduler, [this] { reset_arrives(b_); }) {
  a_.out_ = b_.in_ = &a_to_b_;
  b_.out_ = a_.in_ = &b_to_a_;
  a_.send_reset_ = [this] { send_reset(reset_of_b_); };
  b_.send_reset_ = [this] { send_reset(reset_of_a_); };
}

StreamPipe::Callbacks StreamLink::callbacks(StreamPipe& pipe, StreamEnd& writer,
                                            StreamEnd& reader) {
  return {.arrived = [&reader] { reader.notify(); },
          .writable = [&writer] { writer.notify(); },
          .cut = [this, &pipe, &reader](Cut kind) { cut_reached(pipe, reader, kind); }};
}

void StreamLink::corrupt(const StreamEnd& end, uint64_t offset, std::byte mask) {
  from(end).corrupt(offset, mask);
}

void StreamLink::cut_after(const StreamEnd& end, uint64_t bytes, Cut kind) {
  from(end).cut_after(bytes, kind);
}

void StreamLink::cut_at(Time when, Cut kind) {
  timed_cuts_.push_back(std::make_unique<Alarm>(scheduler_, [this, kind] { cut_now(kind); }));
  timed_cuts_.back()->set(when);
}

void StreamLink::send_reset(Alarm& arrival) {
  if (!silent_) arrival.set(scheduler_.now() + a_to_b_.travel());
}

void StreamLink::reset_arrives(StreamEnd& end) {
  if (end.reset_) return;
  end.reset_ = true;
  end.in_->stop(Cut::reset);
  end.out_->stop(Cut::reset);
  end.notify();
}

// The reader is told afterwards, by the pipe.
void StreamLink::cut_reached(StreamPipe& pipe, StreamEnd& reader, Cut kind) {
  switch (kind) {
    case Cut::fin:
      pipe.end();
      break;
    case Cut::reset:
      reader.reset_ = true;
      a_to_b_.stop(Cut::reset);
      b_to_a_.stop(Cut::reset);
      send_reset(&reader == &b_ ? reset_of_a_ : reset_of_b_);
      break;
    case Cut::silence:
      silent_ = true;
      reset_of_a_.cancel();
      reset_of_b_.cancel();
      a_to_b_.stop(Cut::silence);
      b_to_a_.stop(Cut::silence);
      break;
  }
}

void StreamLink::cut_now(Cut kind) {
  switch (kind) {
    case Cut::fin:
      a_to_b_.end();
      b_to_a_.end();
      a_.notify();
      b_.notify();
      break;
    case Cut::reset:
      reset_arrives(a_);
      reset_arrives(b_);
      break;
    case Cut::silence:
      cut_reached(a_to_b_, b_, kind);
      break;
  }
}

}  // namespace weft::sim
