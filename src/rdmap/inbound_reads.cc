#include "rdmap/inbound_reads.h"

#include <algorithm>

#include "work/atomic.h"
#include "work/faults.h"

namespace weft::rdmap {

namespace term = wire::term;
using mpa::Verdict;
using wire::Refusal;

// RFC 5040 section 6.1: more than the IRD that was agreed on is a catastrophic stream error.
Verdict InboundReads::accept_read(work::Memory& memory, Bytes header, Bytes payload) {
  if (full()) return fail(term::kOperationCatastrophicStream.because(Refusal::reads_beyond_ird));
  const auto request = wire::ReadRequest::parse(payload.data());
  if (request.size > 0) {
    const auto p = memory.remote(request.source_stag, request.source_to, request.size,
                                 work::Access::remote_read);
    if (!p.ok()) return fail(read_fault(p.error()));
  }
  InboundRead& read = push_back({.request = request});
  std::copy(payload.begin(), payload.end(),
            std::copy(header.begin(), header.end(), read.headers.begin()));
  return Ok{};
}

Verdict InboundReads::accept_atomic(work::Memory& memory, Bytes payload) {
  if (full()) return fail(term::kOperationCatastrophicStream.because(Refusal::reads_beyond_ird));
  const auto request = wire::AtomicRequest::parse(payload.data());
  const auto original = work::execute_atomic(memory, request);
  if (!original.ok()) {
    switch (original.error().kind) {
      case work::AtomicFault::Kind::code:
        return fail(term::kOperationUnexpectedOpcode.because(Refusal::atomic_code));
      case work::AtomicFault::Kind::misaligned:
        return fail(term::kOperationCatastrophicStream.because(Refusal::atomic_misaligned));
      case work::AtomicFault::Kind::memory:
        return fail(read_fault(original.error().memory));
    }
  }
  push_back(
      {.atomic = true, .response = {.request_id = request.request_id, .original = *original}});
  return Ok{};
}

}  // namespace weft::rdmap
