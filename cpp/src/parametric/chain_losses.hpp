// The losses that sweeps lower: from scores of a few chains to slopes in all of them. A new loss is
// a name in crfx::SweepLoss and a section of chain_losses.cpp.
#pragma once

#include "parametric/chain_passes.hpp"

namespace crfx {

// What losses hold that does not change from step to step.
struct LossTables {
  explicit LossTables(const ChainData& data);
  TableScores mask;  // of the target of kl
};

// Fills the slopes of chains.
void find_slopes(const FewChains& chains, const TableScores& tables, const LossTables& constants,
                 ChainPasses& passes);

}  // namespace crfx
