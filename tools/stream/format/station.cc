#include "stream/format/station.h"

#include <fmt/format.h>

#include "kit/failure.h"

namespace weft::stream {
namespace {

constexpr uint32_t kUsualClock = 200;  // MHz
constexpr uint32_t kParts = 4;         // of a sample

}  // namespace

uint32_t station_clock(const Shape& shape) {
  return shape.clock != 0 ? shape.clock : kUsualClock;
}

uint32_t station_payload_bytes(const Shape& shape) {
  return shape.beamlets * shape.slices * kParts * shape.bits / 8;
}

void check_station(const Shape& shape, uint64_t most_beamlets, uint64_t most_slices) {
  if (shape.bits != 4 && shape.bits != 8 && shape.bits != 16) {
    throw kit::Failure{"samples have 4, 8 or 16 bits"};
  }
  if (shape.clock != 0 && shape.clock != 160 && shape.clock != 200) {
    throw kit::Failure{"a station's clock has 160 or 200 MHz"};
  }
  if (shape.beamlets == 0 || shape.beamlets > most_beamlets || shape.slices == 0 ||
      shape.slices > most_slices) {
    throw kit::Failure{fmt::format("a packet has 1 to {} beamlets and 1 to {} slices",
                                   most_beamlets, most_slices)};
  }
}

Shape station_essentials(const Shape& shape) {
  return {.format = shape.format,
          .beamlets = shape.beamlets,
          .slices = shape.slices,
          .bits = shape.bits,
          .clock = shape.clock};
}

double station_pace(const Shape& shape) {
  constexpr double kHertz = 1e6;
  return station_clock(shape) * kHertz / static_cast<double>(kSamplesPerSlice) / shape.slices;
}

}  // namespace weft::stream
