"""Names in the news: what a word looks like, what stands around it, and its vector, together.

Sentences of CoNLL-2003 (Reuters news of 1996). A token's features are names made by a template
(words, shapes, endings: yes or no) and the hundred numbers of its GloVe vector. Both go into one
dict; `LinearCRF` takes it as it is. The vectors say of a word that training never showed that it
behaves like others that it did.
"""

from collections import defaultdict

from crfx import LinearCRF
from crfx.datasets import load_conll2003, load_word_vectors
from crfx.features import Template
from crfx.metrics import span_f1

news, glove = load_conll2003(), load_word_vectors()
X_train, y_train = news.train.X[:2500], news.train.y[:2500]
X_test, y_test = news.testb.X[:1000], news.testb.y[:1000]
print(f"{len(X_train)} sentences to learn from, {len(X_test)} to test on")

# 1. Features that are names: each line of the template is a kind, offsets are positions.
template = Template(
    """
    lower(word[-1..1])
    kind(word[-1..1])
    suffix(word[0], 2..4)
    pos[-1..1]
    """,
    columns=["word", "pos", "chunk"],
)


# 2. Features that are numbers: the vector of the word, "vector:0" to "vector:99".
vector_of = [{str(k): float(v) for k, v in enumerate(row)} for row in glove.vectors]


def with_vectors(sentences):
    for sentence, names in zip(sentences, template(sentences), strict=True):
        rows = glove.rows(token.word for token in sentence)
        yield [
            dict.fromkeys(features, 1.0) | ({"vector": vector_of[row]} if row >= 0 else {})
            for features, row in zip(names, rows, strict=True)
        ]


# 3. Train without and with vectors. Tags are IOB1 in the files; "bio" converts them and rules out
#    what no annotator would write, such as an I-PER after an O.
for name, features in [("names", template), ("names and vectors", with_vectors)]:
    crf = LinearCRF(l2=0.5, tol=1e-4, min_count=2, constraints="bio")
    crf.fit(features(X_train), y_train)
    f1 = span_f1(y_test, crf.predict(features(X_test)))
    print(f"{name:18} F1 of entities {f1:.3f}")

# 4. A sentence with a name that training has not met: its entities, and how probable each is,
#    summed over all labellings that have it.
known = {token.word for sentence in X_train for token in sentence}
for tokens, true in zip(X_test, y_test, strict=True):
    words = [token.word for token in tokens]
    (x,) = with_vectors([tokens])
    entities = crf.predict_spans([x])[0]
    new = [span for span in entities if words[span.start] not in known]
    if new and 8 < len(words) < 20 and span_f1([true], crf.predict([x])) == 1:
        break
print("\n" + " ".join(words))
for start, stop, kind, probability in entities:
    print(f"  {kind:4} {probability:.2f}  {' '.join(words[start:stop])}")

# 5. Why? The features that say most for its label, the numbers of the vector taken together.
(own,) = crf.explain(x, positions=[new[0].start]).positions
said = defaultdict(float)
for name, _, contribution in own.strongest(n=len(own.features)):
    said["the vector" if name.startswith("vector:") else name] += contribution
print(
    f"{words[own.position]} is {own.predicted}: {own.marginal[own.place]:.2f}, and without its "
    f"neighbours' labels {own.alone[own.place]:.2f}"
)
for name in sorted(said, key=lambda name: -abs(said[name]))[:5]:
    print(f"  {said[name]:+.2f}  {name}")
