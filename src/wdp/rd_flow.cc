#include "wdp/rd_flow.h"

#include <algorithm>
#include <utility>

#include "wdp/rd_limits.h"

namespace weft::wdp {

uint64_t RdFlow::take_next() {
  const uint64_t request = waiting_.front();
  waiting_.pop_front();
  return request;
}

bool RdFlow::begin(uint16_t stride, bool has_response) {
  if (has_response && reads_ >= kFlowReads) return false;
  sent_.push_back({.has_response = has_response, .request = waiting_.front()});
  waiting_.pop_front();
  if (has_response) ++reads_;
  stride_ = stride;
  partial_ = true;
  offset_ = 0;
  return true;
}

RdSegment RdFlow::segment() const {
  return {.msn = sent_.back().msn,
          .offset = offset_,
          .stride = stride_,
          .opens = offset_ == 0 ? opens_ : opening_};
}

void RdFlow::said(const wire::WdpData& header) {
  if (offset_ == 0) {
    sent_.back().msn = header.msn;
    opening_ = header.flow_open;
    if (opening_) opened_ = header.msn;
  }
  offset_ += header.payload_size();
  if (header.last) end_message();
}

void RdFlow::end_message() {
  partial_ = false;
  if (opening_) opens_ = refused_ = false;
}

std::optional<size_t> RdFlow::find(Msn msn) const {
  const auto at =
      std::find_if(sent_.begin(), sent_.end(), [&](const Sent& s) { return s.msn == msn; });
  const auto index = static_cast<size_t>(at - sent_.begin());
  if (at == sent_.end() || (is_partial(index) && offset_ == 0)) return std::nullopt;
  return index;
}

uint64_t RdFlow::take(size_t at) {
  const Sent s = sent_[at];
  if (s.has_response) --reads_;
  sent_.erase(sent_.begin() + static_cast<ptrdiff_t>(at));
  return s.request;
}

std::optional<uint64_t> RdFlow::take_acknowledged(Msn msn) {
  // What is not sent whole, or has a response, is not what an acknowledgement speaks of.
  const size_t whole = sent_.size() - (partial_ ? 1 : 0);
  for (size_t i = 0; i < whole && distance(sent_[i].msn, msn) >= 0; ++i) {
    if (!sent_[i].has_response) return take(i);
  }
  return std::nullopt;
}

void RdFlow::refuse(size_t at) {
  partial_ = false;
  while (sent_.size() > at) {
    waiting_.push_front(sent_.back().request);
    if (sent_.back().has_response) --reads_;
    sent_.pop_back();
  }
  opens_ = refused_ = true;
}

bool RdFlow::may_try_again(uint8_t most) {
  if (most == kRnrForEver || ++refusals_ <= most) return true;
  refusals_ = 0;
  return false;
}

// Another life of the queue pair takes nothing before F. It has F already if it is behind this.
void RdFlow::unknown_at(Msn msn) {
  if (distance(opened_, msn) >= 0) opens_ = true;
}

bool RdFlow::take_response(Msn msn, bool first) {
  if (first) response_ = msn;
  return response_ == msn;
}

// Until the end of its answer it is one of those that may be unanswered.
void RdFlow::abandon(Msn msn) {
  abandoned_.push_back(msn);
  ++reads_;
}

bool RdFlow::forget_abandoned(Msn msn) {
  if (std::erase(abandoned_, msn) == 0) return false;
  --reads_;
  return true;
}

void RdFlow::begin_again() {
  for (; !sent_.empty(); sent_.pop_back()) waiting_.push_front(sent_.back().request);
  reset();
}

void RdFlow::reset() {
  partial_ = refused_ = false;
  opens_ = true;
  reads_ = refusals_ = 0;
  abandoned_.clear();
  response_.reset();
}

std::optional<uint64_t> RdFlow::take_any() {
  if (!sent_.empty()) {
    const uint64_t request = sent_.front().request;
    sent_.pop_front();
    return request;
  }
  if (waiting_.empty()) return std::nullopt;
  return take_next();
}

}  // namespace weft::wdp
