#include "drive/memory_carrier.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace weft::drive {
namespace {

// That a connection waits with its end for a peer that has not pulled what it was referred to, and
// how often it looks.
constexpr Duration kPulledWithin = std::chrono::seconds{1};
constexpr Duration kLookAgain = std::chrono::milliseconds{2};

}  // namespace

using engine::Token;

void MemoryCarrier::begin(Token& token) {
  using Carrier = port::SharedBytes::Carrier;
  if (bytes_ == nullptr || bytes_->carrier() == Carrier::undecided) return;
  if (bytes_->carrier() == Carrier::tcp) {
    bytes_ = nullptr;
    return;
  }
  stream_.goes_by_memory();
  token.runtime().ask_memory(token, driver_);
}

void MemoryCarrier::hear(Token& token) {
  const bool was_undecided = undecided();
  bytes_->hear();
  if (was_undecided) {
    begin(token);
  } else {
    token.runtime().ask_memory(token, driver_);
  }
}

void MemoryCarrier::use_descriptor(Token& token, bool on, bool waits_for_room) {
  listens_ = on;
  if (bytes_ == nullptr) return;
  if (on) {
    listen(token, waits_for_room);
  } else {
    bytes_->ignore();
    token.runtime().want_write(token, driver_, false);
  }
}

void MemoryCarrier::end(Token& token) {
  if (bytes_ != nullptr) token.runtime().ask_memory_after(token, driver_, {});
  bytes_ = nullptr;
}

// What is there already is told as room in the socket, which there always is.
void MemoryCarrier::listen(Token& token, bool waits_for_room) {
  token.runtime().ask_memory_after(token, driver_, work_word(waits_for_room));
  token.runtime().want_read(token, driver_, !bytes_->ended());
  if (!listens_) return;
  bool there = stream_.wants_bytes() && !bytes_->await_input();
  there |= waits_for_room && !bytes_->await_room();
  token.runtime().want_write(token, driver_, there);
}

void MemoryCarrier::take_back(Token& token) {
  take_back_inside();
  if (tell_loss()) token.runtime().set_deadline(token, driver_, token.now());
}

void MemoryCarrier::take_back_inside() {
  if (bytes_ == nullptr) return;
  if (const void* const lost = bytes_->detach()) lost_ = lost;
}

bool MemoryCarrier::tell_loss() {
  const void* const lost = std::exchange(lost_, nullptr);
  if (lost == nullptr || stream_.ended()) return false;
  stream_.source_lost(lost);
  return true;
}

bool MemoryCarrier::waits_for_pull(Token& token) {
  close_by_ = Time::never();
  if (bytes_ == nullptr || !bytes_->refers_now() || bytes_->ended()) return false;
  if (pull_by_.is_never()) pull_by_ = token.now() + kPulledWithin;
  if (token.now() >= pull_by_) return false;
  close_by_ = std::min(token.now() + kLookAgain, pull_by_);
  token.runtime().closes_at(token, close_by_);
  return true;
}

}  // namespace weft::drive
