"""From your own text to a tagger: users and files in log lines, with features made by hand.

The lines are made up; what is done with them is what one does with real ones: turn every word into
a dict of features, train with a validation part that stops the training, look at the spans that
come out and at how sure the model is, save it and load it again.
"""

import random

from sklearn.feature_extraction import DictVectorizer

from crfx import GBCRF, load
from crfx.metrics import span_f1

# 1. Lines of words, and labels in the BIO scheme. "of" may belong to a file name or not: only what
#    stands around it tells.
LINES = [
    "user {user} opened {file} at 10:31",
    "access of {user} to {file} denied",
    "{file} deleted by {user} , copy of {file} kept",
    "session of user {user} closed",
]
NAMES = {
    "user": ["ada", "grace hopper", "alan", "kurt", "emmy noether", "root"],
    "file": ["notes.txt", "list of friends.doc", "report of may.pdf", "x.log", "my plan.md"],
}


def make_line(draw):
    words, labels = [], []
    for part in draw.choice(LINES).split():
        kind = part.strip("{}") if part.startswith("{") else None
        tokens = draw.choice(NAMES[kind]).split() if kind else [part]
        words += tokens
        labels += (
            [f"{'I' if i else 'B'}-{kind.upper()}" for i in range(len(tokens))] if kind else "O"
        )
    return words, labels


draw = random.Random(0)
lines, y = zip(*(make_line(draw) for _ in range(300)), strict=True)


# 2. Features of a word and its neighbours. DictVectorizer gives sparse matrices: what a word does
#    not have is missing, for training and prediction alike.
def features(line, i):
    values = {}
    for name, at in (("before", i - 1), ("word", i), ("after", i + 1)):
        if 0 <= at < len(line):
            values[f"{name}={line[at]}"] = 1
            values[f"{name} has a full stop"] = int("." in line[at])
            values[f"{name} length"] = len(line[at])
    return values


train, valid, test = slice(0, 200), slice(200, 250), slice(250, 300)
vectorizer = DictVectorizer()
vectorizer.fit(features(line, i) for line in lines[train] for i in range(len(line)))
X = [vectorizer.transform(features(line, i) for i in range(len(line))) for line in lines]

# 3. Train; the loss of the validation lines says when to stop, and the best round is kept.
#    (eval_metric="span_f1" would watch the spans.)
crf = GBCRF(
    n_estimators=100,
    max_depth=4,
    early_stopping_rounds=10,
    random_state=0,
    n_jobs=1,  # small data: more threads would only get in each other's way
)
crf.fit(X[train], list(y[train]), eval_set=(X[valid], list(y[valid])))
f1 = span_f1(y[test], crf.predict(X[test]))
print(f"{crf.n_rounds_} rounds; F1 of spans in new lines: {f1:.3f}")

# 4. Look closer, and keep the model.
crf.save("tagger.crfx")
crf = load("tagger.crfx")
line = ["access", "of", "grace", "hopper", "to", "list", "of", "friends.doc", "denied"]
new = vectorizer.transform(features(line, i) for i in range(len(line)))
for word, label, sure in zip(
    line, crf.predict([new])[0], crf.predict_marginals([new])[0].max(axis=1), strict=True
):
    print(f"{word:12} {label:7} {sure:.2f}")
