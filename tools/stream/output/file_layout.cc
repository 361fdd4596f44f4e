#include "stream/output/file_layout.h"

#include <fmt/format.h>

#include "kit/failure.h"

namespace weft::stream {

std::unique_ptr<FileLayout> make_file_layout(Layout layout, const Shape& shape,
                                             const HeaderFile& header) {
  const bool knows_samples = shape.format == Format::rsp;
  if ((layout == Layout::guppi && !knows_samples) ||
      (layout == Layout::vdif && !knows_samples && shape.format != Format::vdif)) {
    throw kit::Failure{fmt::format(
        "--as {} has to know the order of the samples, which packets of --format {} do not tell",
        layout == Layout::guppi ? "guppi" : "vdif", name_of(shape.format))};
  }
  switch (layout) {
    case Layout::dada:
      return make_dada_layout(header);
    case Layout::guppi:
      return make_guppi_layout(header);
    case Layout::vdif:
      return make_vdif_layout(shape);
    default:
      return make_packets_layout();
  }
}

}  // namespace weft::stream
