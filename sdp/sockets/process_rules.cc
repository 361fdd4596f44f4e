#include "sdp/sockets/process_rules.h"

#include "sdp/sockets/offers.h"
#include "sdp/sockets/transfer_chooser.h"

namespace weft::sdp {

const LoadedRules& process_rules() {
  // Never destroyed: programs connect while they end.
  static const auto* const loaded = [] {
    auto* rules = new LoadedRules(load_rules(RulesEnvironment::of_process()));
    const SentenceLog log{rules->configuration.log};
    for (const Complaint& complaint : rules->configuration.complaints) {
      log.write(LogLevel::warning, sentence(rules->file, complaint));
    }
    if (const auto wrong = ZcopyThreshold::wrong_in_process()) {
      log.write(LogLevel::warning, *wrong);
    }
    if (const auto wrong = OfferThreshold::wrong_in_process()) {
      log.write(LogLevel::warning, *wrong);
    }
    return rules;
  }();
  return *loaded;
}

const SentenceLog& process_log() {
  // Never destroyed, as above.
  static const auto* const log = new SentenceLog(process_rules().configuration.log);
  return *log;
}

}  // namespace weft::sdp
