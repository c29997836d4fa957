"""Bring your own scores: a classifier reads single digits, the core reads the string.

A logistic regression sees one handwritten digit at a time and is now and then unsure. The digits
come from walks on a telephone keypad, where 1 is followed by 2 or 4 and never by 7. We hand both
to `crfx.inference`: what the classifier thinks of every image, and how often one digit follows
another. Out come the best reading of every string and how sure we may be of each digit.
"""

import numpy as np
from sklearn.linear_model import LogisticRegression

from crfx.datasets import load_digit_strings
from crfx.inference import max_product, sum_product

digits = load_digit_strings()
X_train, y_train = np.concatenate(digits.X_train), np.concatenate(digits.y_train)
X_test, y_test = np.concatenate(digits.X_test), np.concatenate(digits.y_test)

# 1. One score per position and label. Take the frequency of each digit out of the classifier's
#    opinion: the transitions below bring their own.
classifier = LogisticRegression(max_iter=300).fit(X_train, y_train)
log_posterior = classifier.predict_log_proba(X_test)
node = log_posterior - np.log(np.bincount(y_train) / len(y_train))

# 2. One score per pair of neighbouring labels, counted in the training strings; the tenth keeps
#    what was never seen possible, if unlikely.
follows = np.full((10, 10), 0.1)
for string in digits.y_train:
    np.add.at(follows, (string[:-1], string[1:]), 1)
edge = np.log(follows / follows.sum(axis=1, keepdims=True))

# 3. Strings are stacked, never padded: offsets say where each one starts, and where the last ends.
offsets = np.cumsum([0] + [len(string) for string in digits.y_test])

best = max_product(node, edge, offsets)
print(
    f"image by image:   {np.mean(log_posterior.argmax(axis=1) == y_test):.1%} of the digits right"
)
print(f"string by string: {np.mean(best.labels == y_test):.1%}")

# 4. Marginals know where the reading is weak: what is read with confidence is right more often.
marginals = sum_product(node, edge, offsets).node
sure = marginals[np.arange(len(y_test)), best.labels] > 0.99
right = best.labels == y_test
print(f"sure of {sure.mean():.1%} of the digits: {right[sure].mean():.1%} of them right")
print(f"unsure of the others:       {right[~sure].mean():.1%} of them right")
