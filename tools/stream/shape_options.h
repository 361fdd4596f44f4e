// The options of a command that say what packets look like.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "stream/packet.h"

namespace weft::stream {

class ShapeOptions {
 public:
  // `shape` and the command live longer.
  ShapeOptions(CLI::App& command, Shape& shape);
  // What was given becomes the shape. Ends the program with status 2 when no packet has it. From a
  // callback of CLI11.
  void complete();

 private:
  Shape& shape_;
  CLI::Option* beamlets_;
  CLI::Option* slices_;
  CLI::Option* bits_;
  std::string number_;
  std::string stream_number_;
};

}  // namespace weft::stream
