"""The page that ``crfx report`` writes: one file of HTML, which asks no network for anything.

`judging` looks at a file sequence by sequence and keeps the telling ones; `labelling` and `ranking`
gather what their page says, from `sequences`, `reasons`, `charts` and `cells`; `templating` is the
one door to Jinja2, whose templates draw it.
"""
