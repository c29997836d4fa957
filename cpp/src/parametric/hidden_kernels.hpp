// The inner loops of hidden.hpp, for a range of rows.
//
// For units that are summed out, exp(a + V) = exp(a) exp(V), so that sum_h log(1 + exp(a_h + V_hk))
// is the log of a product: one multiply-add and one multiplication per row, unit and label, and a
// log only at the end. With a > 0 the factor is e^a (e^-a + e^V), which does not overflow.
#pragma once

#include "crfx/hidden.hpp"
#include "crfx/isa.hpp"
#include "crfx/workspace.hpp"
#include "simd/pack.hpp"

namespace crfx::CRFX_ISA {

constexpr int kTile = 4;              // rows at a time: enough to hide the latency of a product
constexpr int64_t kTilesPerSum = 16;  // gradients are added in S over so many, then in float64
constexpr int64_t kExactPeriod = 32;  // factors of at most 2

template <class S>
constexpr S kLargestPower = sizeof(S) == 4 ? S(20) : S(170);  // of e: beyond it, no e^V
template <class S>
constexpr int64_t kBits = sizeof(S) == 4 ? 120 : 1000;  // that a product may have, up or down

template <class S>
CRFX_INLINE int64_t padded(int64_t n) {
  return (n + Lanes<S>::count - 1) / Lanes<S>::count * Lanes<S>::count;
}
template <class S>
CRFX_INLINE Pack<S> absolute(Pack<S> x) {
  return larger<Pack<S>>(x, -x);
}

// The largest |x|, NaN aside; in packs, as one comparison waits for the one before.
template <class S>
CRFX_INLINE S largest_size(const S* x, int64_t n) {
  constexpr int count = Lanes<S>::count;
  Pack<S> top{};
  int64_t k = 0;
  for (; k + count <= n; k += count) top = larger<Pack<S>>(absolute<S>(load(x + k)), top);
  S found = 0;
  for (int l = 0; l < count; ++l) found = top[l] > found ? top[l] : found;
  for (; k < n; ++k) {
    const S size = x[k] < 0 ? -x[k] : x[k];
    found = size > found ? size : found;
  }
  return found;
}

// A product of many factors, held as mantissa and exponent, and a sum.
template <class S>
struct LogProduct {
  Pack<S> product = splat(S(1)), exponent{}, sum{};

  CRFX_INLINE void normalise() {
    Bits<S> e;
    product *= inverse_power<S>(product, &e);
    exponent += as_numbers<S>(e);
  }
  // The sum, and the log of the product.
  CRFX_INLINE Pack<S> value() {
    normalise();
    return sum + (log_of_mantissa(product) + exponent * S(0.693147180559945309417));
  }
};

// The rules of the activations. `prepare` turns an input into two numbers p, q; `table` is what is
// laid out of V; `add` adds a unit to a score; `slope` gives its derivatives in the input, d, and
// in V, v; the former is multiplied by `outer` in the end.

template <class S>
struct SummedOut {  // with a table of e^V: p + q e^V is 1 + e^(a + V), or e^-a times that
  using P = Pack<S>;
  static constexpr bool is_product = true;
  static CRFX_INLINE void prepare(P x, P& p, P& q, P& sum) {
    const P e = exp_of_negative<S>(-absolute<S>(x)), one = splat(S(1));
    p = x > 0 ? e : one;
    q = x > 0 ? one : e;
    sum += larger<P>(x, P{});
  }
  static CRFX_INLINE void add(S p, S q, P table, LogProduct<S>& to) { to.product *= p + q * table; }
  static CRFX_INLINE void slope(P p, P q, P table, P& d, P& v) {
    const P u = q * table;
    d = v = u * reciprocal(p + u);
  }
  static CRFX_INLINE P outer(P) { return splat(S(1)); }
};

template <class S>
struct SummedOutFar {  // where e^V may be too large or too small: 1 + e^-|a + V|
  using P = Pack<S>;
  static constexpr bool is_product = true;
  static CRFX_INLINE void prepare(P x, P& p, P& q, P&) { p = x, q = P{}; }
  static CRFX_INLINE void add(S p, S, P table, LogProduct<S>& to) {
    const P x = p + table;
    to.sum += larger<P>(x, P{});
    to.product *= S(1) + exp_of_negative<S>(-absolute<S>(x));
  }
  static CRFX_INLINE void slope(P p, P, P table, P& d, P& v) {
    const P x = p + table, e = exp_of_negative<S>(-absolute<S>(x));
    d = v = (x > 0 ? splat(S(1)) : e) * reciprocal(S(1) + e);
  }
  static CRFX_INLINE P outer(P) { return splat(S(1)); }
};

template <class S>
struct Maximised {  // max(0, a + V)
  using P = Pack<S>;
  static constexpr bool is_product = false;
  static CRFX_INLINE void prepare(P x, P& p, P& q, P&) { p = x, q = P{}; }
  static CRFX_INLINE void add(S p, S, P table, LogProduct<S>& to) {
    to.sum += larger<P>(p + table, P{});
  }
  static CRFX_INLINE void slope(P p, P, P table, P& d, P& v) {
    d = v = p + table > 0 ? splat(S(1)) : P{};
  }
  static CRFX_INLINE P outer(P) { return splat(S(1)); }
};

template <class S>
struct Deterministic {  // V g(a); q is g'(a)
  using P = Pack<S>;
  static constexpr bool is_product = false;
  static CRFX_INLINE void add(S p, S, P table, LogProduct<S>& to) { to.sum += p * table; }
  static CRFX_INLINE void slope(P p, P, P table, P& d, P& v) { d = table, v = p; }
  static CRFX_INLINE P outer(P q) { return q; }
};

template <class S>
struct Sigmoid : Deterministic<S> {
  using P = Pack<S>;
  static CRFX_INLINE void prepare(P x, P& p, P& q, P&) {
    const P e = exp_of_negative<S>(-absolute<S>(x)), r = S(1) / (S(1) + e);
    p = x > 0 ? r : e * r;
    q = e * r * r;
  }
};

template <class S>
struct Tanh : Deterministic<S> {
  using P = Pack<S>;
  static CRFX_INLINE void prepare(P x, P& p, P& q, P&) {
    const P e = exp_of_negative<S>(S(-2) * absolute<S>(x)), r = S(1) / (S(1) + e);
    p = (S(1) - e) * r;
    p = x > 0 ? p : -p;
    q = S(4) * e * r * r;
  }
};

// Calls body with the rule for an activation and its table.
template <class S, class Body>
CRFX_INLINE void with_rule(Activation activation, const HiddenTables<S>& tables, Body&& body) {
  switch (activation) {
    case Activation::softplus:
      if (tables.period > 0) return body(SummedOut<S>{});
      return body(SummedOutFar<S>{});
    case Activation::relu:
      return body(Maximised<S>{});
    case Activation::tanh:
      return body(Tanh<S>{});
    case Activation::sigmoid:
      return body(Sigmoid<S>{});
  }
}

template <class S>
void hidden_tables(const HiddenUnits<S>& units, HiddenTables<S>& tables) {
  const int64_t H = units.n_hidden, K = units.n_labels;
  const int64_t wide = padded<S>(K), high = padded<S>(H);
  const S far = largest_size(units.to_label, H * K);
  const bool powers = units.activation == Activation::softplus && far <= kLargestPower<S>;
  // log2(1 + e^far) bits at most per factor
  tables.period = powers ? static_cast<int64_t>(kBits<S> / (far * S(1.4427) + S(1))) : 0;
  for (int64_t h = 0; h < H; ++h) {
    S* row = tables.by_unit + h * wide;
    for (int64_t k = 0; k < K; ++k) row[k] = units.to_label[h * K + k];
    for (int64_t k = K; k < wide; ++k) row[k] = 0;
    if (powers) {
      exp_shifted(row, far, row, wide);
      const S back = static_cast<S>(__builtin_exp(static_cast<double>(far)));
      for (int64_t k = 0; k < wide; ++k) row[k] *= back;
    }
  }
  for (int64_t k = 0; k < K; ++k) {
    S* row = tables.by_label + k * high;
    for (int64_t h = 0; h < H; ++h) row[h] = tables.by_unit[h * wide + k];
    for (int64_t h = H; h < high; ++h) row[h] = 0;
  }
}

// p and q of a row, in whole packs: 0 beyond the last unit but for p = 1. Returns what is the same
// for all labels.
template <class Rule, class S>
CRFX_INLINE S prepare_row(const HiddenUnits<S>& units, const S* inputs, S* p, S* q) {
  constexpr int count = Lanes<S>::count;
  const int64_t H = units.n_hidden, high = padded<S>(H);
  for (int64_t h = 0; h < H; ++h) p[h] = inputs[h] + units.bias[h];
  for (int64_t h = H; h < high; ++h) p[h] = 0;
  Pack<S> sum{};
  for (int64_t h = 0; h < high; h += count) {
    Pack<S> x = load(p + h), one, other;
    Rule::prepare(x, one, other, sum);
    store<S>(p + h, one);
    store<S>(q + h, other);
  }
  S total = 0;
  for (int l = 0; l < count; ++l) total += sum[l];
  return total;
}

// A tile of rows; `rows` of them count, the others repeat the last.
template <class Rule, class S>
void score_tile(const HiddenUnits<S>& units, const HiddenTables<S>& tables, const S* inputs,
                int64_t stride, S* scores, int rows, S* p, S* q) {
  constexpr int count = Lanes<S>::count;
  const int64_t H = units.n_hidden, K = units.n_labels;
  const int64_t wide = padded<S>(K), high = padded<S>(H);
  const int64_t period = tables.period > 0 ? tables.period : kExactPeriod;
  S same[kTile];
  for (int j = 0; j < kTile; ++j) {
    const int from = j < rows ? j : rows - 1;
    same[j] = prepare_row<Rule>(units, inputs + from * stride, p + j * high, q + j * high);
  }
  for (int64_t k = 0; k < wide; k += count) {
    LogProduct<S> found[kTile];
    for (int64_t begin = 0; begin < H; begin += period) {
      const int64_t end = begin + period < H ? begin + period : H;
      for (int64_t h = begin; h < end; ++h) {
        const Pack<S> table = load(tables.by_unit + h * wide + k);
        for (int j = 0; j < kTile; ++j)
          Rule::add(p[j * high + h], q[j * high + h], table, found[j]);
      }
      if (Rule::is_product)
        for (int j = 0; j < kTile; ++j) found[j].normalise();
    }
    const int64_t n = K - k < count ? K - k : count;
    for (int j = 0; j < rows; ++j) {
      S value[count];
      store<S>(value, same[j] + (Rule::is_product ? found[j].value() : found[j].sum));
      for (int64_t l = 0; l < n; ++l) scores[j * K + k + l] = units.constant[k + l] + value[l];
    }
  }
}

// inputs have `stride` numbers a row.
template <class S>
void hidden_scores(const HiddenUnits<S>& units, const HiddenTables<S>& tables, const S* inputs,
                   int64_t stride, S* scores, int64_t n_rows, Workspace& work) {
  const int64_t room = kTile * padded<S>(units.n_hidden);
  S *p = work.take<S>(room), *q = work.take<S>(room);
  with_rule<S>(units.activation, tables, [&]<class Rule>(Rule) {
    for (int64_t row = 0; row < n_rows; row += kTile) {
      const int rows = n_rows - row < kTile ? static_cast<int>(n_rows - row) : kTile;
      score_tile<Rule>(units, tables, inputs + row * stride, stride, scores + row * units.n_labels,
                       rows, p, q);
    }
  });
}

// Adds to sums (K x pad(H)); fills input_gradient, `stride` numbers a row.
template <class Rule, class S>
void gradient_tile(const HiddenUnits<S>& units, const HiddenTables<S>& tables, const S* inputs,
                   int64_t stride, const S* slopes, S* input_gradient, int64_t gradient_stride,
                   S* sums, int rows, S* p, S* q) {
  constexpr int count = Lanes<S>::count;
  const int64_t H = units.n_hidden, K = units.n_labels, high = padded<S>(H);
  const S* slope_of[kTile];
  for (int j = 0; j < kTile; ++j) {
    const int from = j < rows ? j : rows - 1;
    prepare_row<Rule>(units, inputs + from * stride, p + j * high, q + j * high);
    slope_of[j] = slopes + from * K;
  }
  const bool whole = rows == kTile;
  for (int64_t h = 0; h < high; h += count) {
    Pack<S> one[kTile], other[kTile], found[kTile];
    for (int j = 0; j < kTile; ++j) {
      one[j] = load(p + j * high + h);
      other[j] = load(q + j * high + h);
      found[j] = Pack<S>{};
    }
    for (int64_t k = 0; k < K; ++k) {
      S slope[kTile];
      bool any = false;
      for (int j = 0; j < kTile; ++j) {
        slope[j] = whole || j < rows ? slope_of[j][k] : S(0);
        any |= slope[j] != 0;
      }
      if (!any) continue;
      const Pack<S> table = load(tables.by_label + k * high + h);
      Pack<S> sum = load(sums + k * high + h);
      for (int j = 0; j < kTile; ++j) {
        Pack<S> d, v;
        Rule::slope(one[j], other[j], table, d, v);
        found[j] += slope[j] * d;
        sum += slope[j] * v;
      }
      store<S>(sums + k * high + h, sum);
    }
    const int64_t n = H - h < count ? H - h : count;
    for (int j = 0; j < rows; ++j) {
      S value[count];
      store<S>(value, found[j] * Rule::outer(other[j]));
      for (int64_t l = 0; l < n; ++l) input_gradient[j * gradient_stride + h + l] = value[l];
    }
  }
}

// Moves sums to float64 and clears them.
template <class S>
void flush_sums(const HiddenUnits<S>& units, S* sums, double* to) {
  const int64_t H = units.n_hidden, K = units.n_labels, high = padded<S>(H);
  for (int64_t k = 0; k < K; ++k)
    for (int64_t h = 0; h < H; ++h) to[h * K + k] += static_cast<double>(sums[k * high + h]);
  for (int64_t e = 0; e < K * high; ++e) sums[e] = 0;
}

// Adds to `gradient`; fills input_gradient.
template <class S>
void hidden_gradient(const HiddenUnits<S>& units, const HiddenTables<S>& tables, const S* inputs,
                     int64_t stride, const S* slopes, S* input_gradient, int64_t gradient_stride,
                     const HiddenGradient& gradient, int64_t n_rows, Workspace& work) {
  const int64_t H = units.n_hidden, K = units.n_labels, high = padded<S>(H);
  S *p = work.take<S>(kTile * high), *q = work.take<S>(kTile * high);
  S* sums = work.take<S>(K * high);
  for (int64_t e = 0; e < K * high; ++e) sums[e] = 0;
  with_rule<S>(units.activation, tables, [&]<class Rule>(Rule) {
    for (int64_t row = 0, tile = 1; row < n_rows; row += kTile, ++tile) {
      const int rows = n_rows - row < kTile ? static_cast<int>(n_rows - row) : kTile;
      gradient_tile<Rule>(units, tables, inputs + row * stride, stride, slopes + row * K,
                          input_gradient + row * gradient_stride, gradient_stride, sums, rows, p,
                          q);
      if (tile % kTilesPerSum == 0 && row + kTile < n_rows)
        flush_sums(units, sums, gradient.to_label);
    }
  });
  flush_sums(units, sums, gradient.to_label);
  for (int64_t row = 0; row < n_rows; ++row) {
    const S* own = input_gradient + row * gradient_stride;
    for (int64_t h = 0; h < H; ++h) gradient.bias[h] += static_cast<double>(own[h]);
    for (int64_t k = 0; k < K; ++k)
      gradient.constant[k] += static_cast<double>(slopes[row * K + k]);
  }
}

}  // namespace crfx::CRFX_ISA
