// The losses of epochs: from scores of a few chains to their gradients (slopes). A new loss is
// a name in crfx::SweepLoss and a section of chain_losses.cpp.
#pragma once

#include "parametric/chain_passes.hpp"

namespace crfx {

// The parts of losses that do not change from step to step.
struct LossTables {
  explicit LossTables(const ChainData& data);
  TableScores mask;  // of the target of kl
};

// Computes the slopes of chains.
void find_slopes(const FewChains& chains, const TableScores& tables, const LossTables& constants,
                 ChainPasses& passes);

}  // namespace crfx
