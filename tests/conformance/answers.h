// What the tests of spec/errors 3 share: an offence, and the Terminate that answers it.
#pragma once

#include <functional>

#include "tests/conformance/peer.h"

namespace weft::conformance {

inline wire::ReadRequest reading(Stag source, uint64_t to, uint32_t size) {
  return {.sink_stag = Stag{5}, .size = size, .source_stag = source, .source_to = TaggedOffset{to}};
}
inline wire::AtomicRequest adding(Stag stag, uint64_t to) {
  return {.request_id = 3, .stag = stag, .to = TaggedOffset{to}, .add_swap = 1};
}

// With the extension and without: the answer is the same.
inline void answers(const std::function<Buffer(Peer&)>& offence, wire::TermError error,
                    Quoted quoted) {
  for (const bool extension : {true, false}) {
    SCOPED_TRACE(extension ? "between wefts" : "towards a plain peer");
    Peer p(extension);
    const Buffer u = offence(p);
    p.hears(u);
    expect_terminate(p, error, quoted, u);
    EXPECT_TRUE(p.memory_untouched());
  }
}
// Opcodes that only wefts know.
inline void answers_weft(const std::function<Buffer(Peer&)>& offence, wire::TermError error,
                         Quoted quoted) {
  Peer p;
  const Buffer u = offence(p);
  p.hears(u);
  expect_terminate(p, error, quoted, u);
  EXPECT_TRUE(p.memory_untouched());
}

}  // namespace weft::conformance
