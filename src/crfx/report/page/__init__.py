"""The page that ``crfx report`` writes: one file of HTML, which asks no network for anything.

`labelling_page` and `ranking_page` gather what their page says, from `sequences`, `reasons` and
`charts`; `templating` is the one door to Jinja2, whose templates draw it.
"""
