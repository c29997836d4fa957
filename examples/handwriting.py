"""Reading handwriting: letters by their pixels alone, then as parts of words.

52,152 letters of 6,877 handwritten words (Kassel; Taskar et al. 2003), 16 x 8 black or white
pixels each. A letter read alone is often in doubt; its neighbours settle it. The same trees are
boosted twice: without edges, which is ordinary boosting, and with a table that says which letter
follows which.
"""

import numpy as np

from crfx import GBCRF
from crfx.datasets import load_ocr

ocr = load_ocr()
train, test = ocr.fold(0)
rng = np.random.default_rng(0)
train, test = rng.permutation(train)[:700], rng.permutation(test)[:300]
X_train, y_train = [ocr.X[i] for i in train], [ocr.y[i] for i in train]
X_test, y_test = [ocr.X[i] for i in test], [ocr.y[i] for i in test]
print(f"{sum(map(len, y_train))} letters to learn from, {sum(map(len, y_test))} to test on")

# 1. Letters alone, then chains.
settings = {"n_estimators": 30, "max_depth": 4, "colsample_bynode": 0.2, "random_state": 0}
alone = GBCRF(edges=None, **settings)
chain = GBCRF(edges="table", **settings)
for name, crf in [("letters alone", alone), ("letters in words", chain)]:
    crf.fit(X_train, y_train)
    print(f"{name:17} {crf.score(X_test, y_test):.1%} right")

# 2. A word that only its neighbours made readable.
readings = zip(alone.predict(X_test), chain.predict(X_test), y_test, strict=True)
chosen = next(
    i
    for i, (first, second, true) in enumerate(readings)
    if len(true) < 9 and np.sum(first != true) > 1 and (second == true).all()
)
word = X_test[chosen]
for row in range(16):
    print("  ".join("".join(" #"[int(dot)] for dot in x.reshape(16, 8)[row]) for x in word))
for name, crf in [("alone", alone), ("in the word", chain)]:
    print(f"{name:12} {' '.join(crf.predict([word])[0])}")

# 3. What follows what: the table of the chain, by the letter before.
letters = chain.classes_.tolist()
follows = {a: letters[chain.transitions_[k].argmax()] for k, a in enumerate(letters)}
print("the table favours", ", ".join(f"{a}{follows[a]}" for a in "ilqu"))

# 4. Why is the letter that changed what it is? Its pixels, and beside them those, black or white,
#    that speak for it (+) and against it (-); and what its neighbours added.
changed = int(np.argmax(alone.predict([word])[0] != chain.predict([word])[0]))
(own,) = chain.explain(word, positions=[changed]).positions
said = np.zeros(128)
for name, _, contribution in own.strongest(n=128):
    said[int(name[1:])] = contribution  # f0 to f127
signs = np.select([said > 0.1, said < -0.1], ["+", "-"], ".")
for row in np.split(np.arange(128), 16):
    print("".join(np.where(word[changed][row], "#", ".")), "".join(signs[row]))
print(
    f"{own.predicted}: {own.marginal[own.place]:.2f}, and without its neighbours "
    f"{own.alone[own.place]:.2f}"
)
