// Epochs over instances, for Python: data are passed once, parameters with every epoch.
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "chains.hpp"
#include "crfx/sweeps.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <class T>
using MaybeMatrix = std::optional<nb::ndarray<nb::numpy, T, nb::ndim<2>, nb::c_contig>>;

class Sweeps {
 public:
  Sweeps(const BoundChains& chains, MaybeMatrix<const float> dense,
         MaybeVector1<const int64_t> starts, MaybeVector1<const int32_t> indices,
         MaybeVector1<const float> values, Vector1<const int64_t> weight_starts,
         MaybeVector1<const int32_t> outputs, MaybeVector1<const bool> free)
      : chains_(chains),
        dense_(dense),
        starts_(starts),
        indices_(indices),
        values_(values),
        weight_starts_(weight_starts),
        outputs_(outputs),
        free_(free) {
    data_.chains = chains_.view;
    data_.dense = dense_ ? dense_->data() : nullptr;
    data_.X = {data_of(starts_), data_of(indices_), data_of(values_), 0};
    data_.pattern = {weight_starts_.data(), data_of(outputs_), data_.chains.n_labels};
    data_.n_features = static_cast<int64_t>(weight_starts_.shape(0)) - 1;
    data_.free = data_of(free_);
  }

  std::tuple<double, double, int64_t> run(const BoundSteps& steps, Vector1<double> values,
                                          Vector1<double> sum, Vector1<double> product_then,
                                          Vector1<double> steps_then, double product,
                                          double counted, int64_t n_counted) const {
    crfx::SweepParameters at{values.data(),
                             sum.data(),
                             product_then.data(),
                             steps_then.data(),
                             static_cast<int64_t>(values.shape(0)),
                             product,
                             counted,
                             n_counted};
    nb::gil_scoped_release released;
    crfx::sweep(data_, steps.view, at);
    return {at.product, at.steps, at.n_counted};
  }

 private:
  BoundChains chains_;
  MaybeMatrix<const float> dense_;
  MaybeVector1<const int64_t> starts_;
  MaybeVector1<const int32_t> indices_;
  MaybeVector1<const float> values_;
  Vector1<const int64_t> weight_starts_;
  MaybeVector1<const int32_t> outputs_;
  MaybeVector1<const bool> free_;
  crfx::SweepData data_;
};

}  // namespace

void bind_sweep(nb::module_& m) {
  nb::class_<BoundLoss>(m, "SweepLoss", "What sweeps lower; the arrays are viewed, not copied.")
      .def(nb::init<const std::string&, MaybeVector1<const double>, MaybeVector1<const float>, bool,
                    double>(),
           "kind"_a, nb::kw_only(), "class_weights"_a.noconvert().none(),
           "table"_a.noconvert().none(), "by_length"_a, "unit"_a);
  nb::class_<BoundChains>(m, "Chains", "Chains to sweep over; the arrays are viewed, not copied.")
      .def(nb::init<Vector1<const int64_t>, MaybeVector1<const int64_t>,
                    MaybeVector1<const int32_t>, Vector1<const int32_t>, MaybeVector1<const double>,
                    const BoundLoss&, int, int, int64_t, const std::string&, bool, bool, bool,
                    MaybeVector1<const float>, MaybeVector1<const float>, MaybeVector1<const float>,
                    MaybeVector1<const float>, MaybeVector1<const float>>(),
           "offsets"_a.noconvert(), "parents"_a.noconvert().none(),
           "edge_types"_a.noconvert().none(), "labels"_a.noconvert(),
           "weights"_a.noconvert().none(), "loss"_a, nb::kw_only(), "n_labels"_a, "order"_a,
           "n_types"_a, "sharing"_a, "has_edge"_a, "has_start"_a, "has_end"_a,
           "base_node"_a.noconvert().none(), "base_edge"_a.noconvert().none(),
           "base_start"_a.noconvert().none(), "base_end"_a.noconvert().none(),
           "base_pairs"_a.noconvert().none());
  nb::class_<BoundSteps>(m, "SweepSteps", "Steps over instances, see crfx.trainers.sgd.Steps.")
      .def(nb::init<Vector1<const int64_t>, int64_t, int64_t, double, double, double, double, bool,
                    int>(),
           "order"_a.noconvert(), nb::kw_only(), "batch_size"_a, "first"_a, "step"_a, "period"_a,
           "penalty"_a, "smallest_shrinkage"_a, "counts"_a, "n_threads"_a);
  nb::class_<Sweeps>(m, "Sweeps", "Chains whose nodes are scored by linear functions.")
      .def(nb::init<const BoundChains&, MaybeMatrix<const float>, MaybeVector1<const int64_t>,
                    MaybeVector1<const int32_t>, MaybeVector1<const float>, Vector1<const int64_t>,
                    MaybeVector1<const int32_t>, MaybeVector1<const bool>>(),
           "chains"_a, "dense"_a.noconvert().none(), "starts"_a.noconvert().none(),
           "indices"_a.noconvert().none(), "values"_a.noconvert().none(),
           "weight_starts"_a.noconvert(), "outputs"_a.noconvert().none(),
           "free"_a.noconvert().none())
      .def("run", &Sweeps::run, "asked"_a, nb::kw_only(), "values"_a.noconvert(),
           "sum"_a.noconvert(), "product_then"_a.noconvert(), "steps_then"_a.noconvert(),
           "product"_a, "steps"_a, "n_counted"_a,
           "Sweeps once over the instances in order, changing the arrays of parameters; returns "
           "what product, steps and n_counted then are.");
}
