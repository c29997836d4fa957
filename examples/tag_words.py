"""A tagger from dicts of features, as sklearn-crfsuite takes them, in crfx.

Each step says what it was called there; docs/from-sklearn-crfsuite.md has the whole list. The
sentences are made up: a name is a person or a place, and what stands around it tells which.
"""

import random

import numpy as np
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV

from crfx import LinearCRF, load
from crfx.features import Template
from crfx.metrics import span_f1

# 1. Sentences of (word, tag), and labels in the BIO scheme.
PATTERNS = [
    "{PER} lives in {LOC} .",
    "in {LOC} it rained .",
    "{PER} met {PER} near {LOC} .",
    "yesterday Mrs {PER} spoke .",
    "trains from {LOC} to {LOC} are late .",
]
NAMES = ["Paris", "Sydney", "Jordan", "Chelsea", "Austin", "Florence", "Savannah", "New Haven"]


def make_sentence(draw):
    words, labels = [], []
    for part in draw.choice(PATTERNS).split():
        kind = part.strip("{}") if part.startswith("{") else None
        own = draw.choice(NAMES).split() if kind else [part]
        words += own
        labels += [f"{'I' if i else 'B'}-{kind}" for i in range(len(own))] if kind else ["O"]
    return [(word, "NNP" if word[0].isupper() else "X") for word in words], labels


draw = random.Random(0)
sentences, y = zip(*(make_sentence(draw) for _ in range(250)), strict=True)


# 2. Features: the function that you have.
def word2features(sentence, i):
    word, tag = sentence[i]
    features = {"bias": 1.0, "word": word.lower(), "title": word.istitle(), "tag": tag}
    if i > 0:
        features["-1:word"] = sentence[i - 1][0].lower()
    else:
        features["BOS"] = True
    if i < len(sentence) - 1:
        features["+1:word"] = sentence[i + 1][0].lower()
    return features


X = [[word2features(sentence, i) for i in range(len(sentence))] for sentence in sentences]
X_train, X_test, y_train, y_test = X[:200], X[200:], list(y[:200]), list(y[200:])

# 3. sklearn_crfsuite.CRF(algorithm="lbfgs", c1=..., c2=..., max_iterations=100): penalties by
#    cross-validation.
search = GridSearchCV(
    LinearCRF(max_iter=100, n_jobs=1),
    {"l1": [0.0, 0.1], "l2": [0.01, 0.1]},
    scoring=make_scorer(span_f1),
    cv=3,
)
search.fit(X_train, y_train)
crf = search.best_estimator_
f1 = span_f1(y_test, crf.predict(X_test))
print(f"{search.best_params_}; F1 of spans in new sentences: {f1:.3f}")

# 4. crf.state_features_ and crf.transition_features_: what was learned.
weights = crf.coef_.tocoo()
for best in np.argsort(-weights.data)[:5]:
    name, label = crf.feature_names_in_[weights.col[best]], crf.classes_[weights.row[best]]
    print(f"{weights.data[best]:6.2f}  {name} -> {label}")
names = crf.classes_.tolist()
after = crf.transitions_[names.index("B-LOC"), names.index("I-LOC")]
print(f"{after:6.2f}  B-LOC is followed by I-LOC")

# 5. joblib.dump(crf, ...): a file that executes nothing when it is read.
crf.save("words.crfx")
print(load("words.crfx").predict(X_test[:1])[0])

# 6. New: the same from columns, through a template; no dicts are made.
template = Template("lower(word[-1..1])\nkind(word[0])", columns=["word", "tag"])
short = LinearCRF(l2=0.1, n_jobs=1).fit(template(sentences[:200]), y_train)
print(f"through a template: {span_f1(y_test, short.predict(template(sentences[200:]))):.3f}")
