"""What reviewers feel: a sentiment for every phrase of a sentence, along its parse tree.

The Stanford Sentiment Treebank (Socher et al. 2013) has sentences of film reviews as binary trees;
every phrase, from a word to the sentence, has one of five sentiments. An instance here is a tree:
`parents` says what each phrase is a part of, `edge_types` whether it is the left or the right one.
"""

import numpy as np

from crfx import LinearCRF
from crfx.datasets import load_sst

FEELINGS = ["very negative", "negative", "neutral", "positive", "very positive"]


# 1. The words of every phrase, from the leaves up: each node comes before its children.
def phrases(words, parents):
    texts = [[] if word is None else [word.lower()] for word in words]
    for node in range(len(words) - 1, 0, -1):
        texts[parents[node]] = texts[node] + texts[parents[node]]
    return texts


# 2. Features of a phrase: its words, its first word (not, too, very, ...), pairs, its length.
def features(words, parents):
    tree = []
    for phrase in phrases(words, parents):
        values = {f"has {word}": len(phrase) ** -0.5 for word in phrase}
        values |= {"bias": 1.0, f"length {min(len(phrase), 6)}": 1.0}
        if len(phrase) > 1:
            values[f"starts with {phrase[0]}"] = 1.0
        if len(phrase) == 2:
            values[" ".join(phrase)] = 1.0
        tree.append(values)
    return tree


# The files begin with praise and end with blame: take sentences at random.
def some(split, count):
    chosen = np.random.default_rng(0).permutation(len(split.y))[:count]
    words, parents = ([part[i] for i in chosen] for part in (split.words, split.parents))
    edges = {"parents": parents, "edge_types": [split.edge_types[i] for i in chosen]}
    return words, list(map(features, words, parents)), [split.y[i] for i in chosen], edges


sst = load_sst()
_, X_train, y_train, trees_train = some(sst.train, 1500)
words, X_test, y_test, trees_test = some(sst.test, 500)
print(f"{sum(map(len, y_train))} phrases to learn from, {sum(map(len, y_test))} to test on")

# 3. Phrase by phrase, then along the tree: one table for left children, one for right ones.
for name, edges in [("phrase by phrase", None), ("along the tree", "table")]:
    crf = LinearCRF(l2=1.0, tol=1e-3, min_count=2, edges=edges, decode="marginal")
    crf.fit(X_train, y_train, **trees_train)
    found = crf.predict(X_test, **trees_test)
    roots = [(own[0], true[0]) for own, true in zip(found, y_test, strict=True)]
    sides = [(own > 2) == (true > 2) for own, true in roots if true != 2]
    print(
        f"{name:17} phrases {crf.score(X_test, y_test, **trees_test):.1%} right, whole sentences "
        f"{np.mean([own == true for own, true in roots]):.1%}, good or bad {np.mean(sides):.1%}"
    )

# 4. A short sentence that comes out right: what is felt about its phrases.
chosen = next(
    i
    for i, true in enumerate(y_test)
    if len(true) < 26 and true[0] in (0, 4) and (found[i] == true).mean() > 0.9
)
for phrase, feeling in zip(
    phrases(words[chosen], trees_test["parents"][chosen]), found[chosen], strict=True
):
    if len(phrase) > 1:
        print(f"  {FEELINGS[feeling]:13}  {' '.join(phrase)}")

# 5. Why is the whole of it felt like that? Its own words, and what its parts add.
tree = {name: part[chosen] for name, part in trees_test.items()}
print(crf.explain(X_test[chosen], positions=[0], **tree).as_text())
