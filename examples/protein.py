"""The shape of proteins: which amino acids lie in helices, which in sheets.

128 chains of Qian and Sejnowski (1988). A residue is a letter, one of twenty; `TreeCRF` grows trees
that look at the letters of a window *and* at the class of the residue before, so that a sheet may
go on where the same letters would not begin one (Dietterich et al. 2004).
"""

import numpy as np
import pandas

from crfx import TreeCRF
from crfx.datasets import load_qian_sejnowski

proteins = load_qian_sejnowski()
NAMES = {"h": "helix", "e": "sheet", "_": "coil"}


# 1. One column of categories: trees split the letters into two sets, whichever part best.
def letters(chain):
    column = pandas.Categorical(list(chain), categories=list("ARNDCQEGHILKMFPSTWYV"))
    return pandas.DataFrame({"residue": column})


X_train, y_train = list(map(letters, proteins.train.residues)), proteins.train.y
X_test, y_test = list(map(letters, proteins.test.residues)), proteins.test.y
print(f"{sum(map(len, y_train))} residues to learn from, {sum(map(len, y_test))} to test on")

# 2. Eleven residues in the window; rounds and leaves as cross-validation chose them. Residues are
#    judged one by one, so each gets its most probable class (decode="marginal").
crf = TreeCRF(122, max_leaves=5, window=11, decode="marginal", random_state=0)
crf.fit(X_train, y_train)
print(f"right: {crf.score(X_test, y_test):.1%}")
most_common = np.mean(np.concatenate(y_test) == "_")
print(f"calling everything coil: {most_common:.1%}")

# 3. Where the model is sure it is right more often: what it leaves open is for the laboratory.
sure = np.concatenate(crf.predict_marginals(X_test)).max(axis=1)
right = np.concatenate(crf.predict(X_test)) == np.concatenate(y_test)
for least in (0.5, 0.6, 0.7, 0.8):
    chosen = sure >= least
    print(f"sure to {least:.0%}: {chosen.mean():5.1%} of all, {right[chosen].mean():.1%} right")

# 4. A chain, with what was found below what is so.
shortest = min(range(len(y_test)), key=lambda i: len(y_test[i]))
(found,) = crf.predict([X_test[shortest]])
for title, line in [
    ("residues", proteins.test.residues[shortest]),
    ("true", "".join(y_test[shortest])),
    ("found", "".join(found)),
]:
    print(f"{title:9} {line[:70]}")

# 5. Why does the sheet begin where it does? SHAP values of the letters around, of the class before,
#    and what the rest of the chain adds.
begin = found.tolist().index("e")
print(crf.explain(X_test[shortest], positions=[begin]).as_text())
