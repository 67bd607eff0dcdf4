"""A result for people: per trial what was found, missed and wrongly blamed, with truth and prediction side by side.

text       agents' words made harmless and visible
drawing    a component graph as SVG or Mermaid
html       one self-contained page
markdown   the same for a terminal, a pull request or a wiki
"""
