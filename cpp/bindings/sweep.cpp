// Sweeps over instances for Python: data are handed over once, parameters with every sweep.
#include "crfx/sweep.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <tuple>

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <class T>
using Array = nb::ndarray<nb::numpy, T, nb::ndim<1>, nb::c_contig>;
template <class T>
using Maybe = std::optional<Array<T>>;

template <class T>
T* data_of(const Maybe<T>& array) {
  return array ? array->data() : nullptr;
}

class Sweeps {
 public:
  Sweeps(Array<const int64_t> starts, Array<const int32_t> indices, Maybe<const float> values,
         Array<const int64_t> weight_starts, Maybe<const int32_t> outputs, Maybe<const bool> free,
         Array<const int64_t> offsets, Maybe<const int32_t> edge_types, Array<const int32_t> labels,
         Maybe<const double> weights, int n_labels, int order, int64_t n_types, bool has_edge,
         bool has_start, bool has_end)
      : starts_(starts),
        indices_(indices),
        values_(values),
        weight_starts_(weight_starts),
        outputs_(outputs),
        free_(free),
        offsets_(offsets),
        edge_types_(edge_types),
        labels_(labels),
        weights_(weights) {
    data_.X = {starts_.data(), indices_.data(), data_of(values_),
               static_cast<int64_t>(starts_.shape(0)) - 1};
    data_.pattern = {weight_starts_.data(), data_of(outputs_), n_labels};
    data_.n_features = static_cast<int64_t>(weight_starts_.shape(0)) - 1;
    data_.free = data_of(free_);
    data_.chains.offsets = offsets_.data();
    data_.chains.edge_types = data_of(edge_types_);
    data_.chains.labels = labels_.data();
    data_.chains.weights = data_of(weights_);
    data_.chains.n_types = n_types;
    data_.chains.n_labels = n_labels;
    data_.chains.order = order;
    data_.chains.has_edge = has_edge;
    data_.chains.has_start = has_start;
    data_.chains.has_end = has_end;
  }

  std::tuple<double, double, int64_t> run(Array<const int64_t> order, int64_t batch_size,
                                          int64_t first, double step, double period, double penalty,
                                          double smallest_shrinkage, bool counts, bool perceptron,
                                          float margin, Array<double> values, Array<double> sum,
                                          Array<double> product_then, Array<double> steps_then,
                                          double product, double steps, int64_t n_counted) const {
    const crfx::SweepSteps asked{
        order.data(), static_cast<int64_t>(order.shape(0)),
        batch_size,   first,
        step,         period,
        penalty,      smallest_shrinkage,
        counts,       perceptron ? crfx::SweepLoss::perceptron : crfx::SweepLoss::likelihood,
        margin};
    crfx::SweepParameters at{values.data(),
                             sum.data(),
                             product_then.data(),
                             steps_then.data(),
                             static_cast<int64_t>(values.shape(0)),
                             product,
                             steps,
                             n_counted};
    nb::gil_scoped_release released;
    crfx::sweep(data_, asked, at);
    return {at.product, at.steps, at.n_counted};
  }

 private:
  Array<const int64_t> starts_;
  Array<const int32_t> indices_;
  Maybe<const float> values_;
  Array<const int64_t> weight_starts_;
  Maybe<const int32_t> outputs_;
  Maybe<const bool> free_;
  Array<const int64_t> offsets_;
  Maybe<const int32_t> edge_types_;
  Array<const int32_t> labels_;
  Maybe<const double> weights_;
  crfx::SweepData data_;
};

}  // namespace

void bind_sweep(nb::module_& m) {
  nb::class_<Sweeps>(m, "Sweeps", "Chains to sweep over; the arrays are viewed, not copied.")
      .def(nb::init<Array<const int64_t>, Array<const int32_t>, Maybe<const float>,
                    Array<const int64_t>, Maybe<const int32_t>, Maybe<const bool>,
                    Array<const int64_t>, Maybe<const int32_t>, Array<const int32_t>,
                    Maybe<const double>, int, int, int64_t, bool, bool, bool>(),
           "starts"_a.noconvert(), "indices"_a.noconvert(), "values"_a.noconvert().none(),
           "weight_starts"_a.noconvert(), "outputs"_a.noconvert().none(),
           "free"_a.noconvert().none(), "offsets"_a.noconvert(), "edge_types"_a.noconvert().none(),
           "labels"_a.noconvert(), "weights"_a.noconvert().none(), nb::kw_only(), "n_labels"_a,
           "order"_a, "n_types"_a, "has_edge"_a, "has_start"_a, "has_end"_a)
      .def("run", &Sweeps::run, "order"_a.noconvert(), nb::kw_only(), "batch_size"_a, "first"_a,
           "step"_a, "period"_a, "penalty"_a, "smallest_shrinkage"_a, "counts"_a, "perceptron"_a,
           "margin"_a, "values"_a.noconvert(), "sum"_a.noconvert(), "product_then"_a.noconvert(),
           "steps_then"_a.noconvert(), "product"_a, "steps"_a, "n_counted"_a,
           "Sweeps once over the instances in order, changing the arrays of parameters; returns "
           "what product, steps and n_counted then are.");
}
