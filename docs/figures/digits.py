"""Draw one string of handwritten digits, as two models read it: `python docs/figures/digits.py`."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from crfx import GBCRF
from crfx.datasets import load_digit_strings

WRONG = "#d62728"

digits = load_digit_strings()
models = {
    "each image alone": GBCRF(edges=None, random_state=0),
    "the whole string": GBCRF(order=2, random_state=0),
}
accuracy, labels = {}, {}
for name, model in models.items():
    model.fit(digits.X_train, digits.y_train)
    accuracy[name] = model.score(digits.X_test, digits.y_test)
    labels[name] = model.predict(digits.X_test)

alone, whole = labels.values()
string = max(
    (k for k, truth in enumerate(digits.y_test) if (whole[k] == truth).all()),
    key=lambda k: (alone[k] != digits.y_test[k]).mean(),
)
truth = digits.y_test[string]
figure, axes = plt.subplots(1, len(truth), figsize=(8, 1.7))
figure.subplots_adjust(left=0.3, right=0.99, top=0.98, bottom=0.45, wspace=0.1)
heights = dict(zip(models, (0.3, 0.1), strict=True))
for name, height in heights.items():
    text = f"{name}: {accuracy[name]:.0%} right"
    figure.text(0.01, height, text, fontsize=11, va="center")
for position, axis in enumerate(axes):
    axis.imshow(digits.X_test[string][position].reshape(8, 8), cmap="gray_r")
    axis.set_axis_off()
    box = axis.get_position()
    for name, height in heights.items():
        digit = labels[name][string][position]
        is_wrong = digit != truth[position]
        color, weight = (WRONG, "bold") if is_wrong else ("black", "normal")
        place = {"ha": "center", "va": "center", "fontsize": 15}
        figure.text((box.x0 + box.x1) / 2, height, digit, color=color, weight=weight, **place)
figure.savefig(Path(__file__).with_suffix(".png"), dpi=110)
