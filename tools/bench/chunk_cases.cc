// The cases of the chunk test.
#include <fmt/format.h>

#include "bench/cases.h"
#include "bench/chunks.h"
#include "kit/failure.h"

namespace weft::bench {
namespace {

// Of a chunk: three of them are below a queue pair's limit.
constexpr uint32_t kMostRequests = 5000;

}  // namespace

std::vector<Spec> chunk_cases(const CaseChoice& choice) {
  std::vector<Spec> all;
  for (const uint64_t size : choice.sizes) {
    Spec tcp{.name = fmt::format("tcp/{}", size_name(size)),
             .operation = Operation::tcp_chunk,
             .size = size};
    tcp.piece = choice.piece;
    const uint32_t requests = requests_of_chunk(size, choice.piece);
    if (requests > kMostRequests) {
      throw kit::Failure{fmt::format(
          "a chunk of {} takes {} requests; more than {} do not fit: choose a larger --write-size",
          size_name(size), requests, kMostRequests)};
    }
    all.push_back(tcp);
    for (const bool crc : {false, true}) {
      Spec chunk = tcp;
      chunk.name = fmt::format("chunk/{}/{}", size_name(size), crc ? "crc" : "no-crc");
      chunk.operation = Operation::chunk;
      chunk.crc = crc;
      chunk.depth = static_cast<uint32_t>(kChunkBuffers) * requests;
      chunk.baseline = tcp.name;
      all.push_back(chunk);
    }
  }
  return all;
}

}  // namespace weft::bench
