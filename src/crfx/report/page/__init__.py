"""The page that ``crfx report`` writes: one HTML file, which needs no network.

`labelling_page` and `ranking_page` gather the values of their page from `sequences`, `reasons` and
`charts`; `templating` is the one door to Jinja2, whose templates draw it.
"""
