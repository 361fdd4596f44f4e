// What the stations of LOFAR have in common, of either generation: samples and clock.
#pragma once

#include <cstdint>

#include "stream/packet.h"

namespace weft::stream {

constexpr uint64_t kSamplesPerSlice = 1024;  // the filter bank makes one time slice of them
// How long a slice lasts, at a clock of so many MHz.
constexpr int64_t slice_ns(uint32_t clock) {
  return static_cast<int64_t>(kSamplesPerSlice) * 1000 / clock;
}
// As wide as a beamlet is.
constexpr double channel_mhz(uint32_t clock) {
  return clock / static_cast<double>(kSamplesPerSlice);
}

// MHz: the shape's, or the usual one.
uint32_t station_clock(const Shape& shape);
// Of the shape's beamlets and slices: each sample has two polarisations of a real and an imaginary
// part.
uint32_t station_payload_bytes(const Shape& shape);
// Throws kit::Failure for samples or a clock that no station has, or for more beamlets and slices
// than its packets can count.
void check_station(const Shape& shape, uint64_t most_beamlets, uint64_t most_slices);
// What a receiver looks at.
Shape station_essentials(const Shape& shape);
// Packets a second of a station; also what a format without a pace of its own has.
double station_pace(const Shape& shape);

}  // namespace weft::stream
