"""Reports: per trial the roots found, missed and wrongly blamed, with ground truth and prediction side by side.

text       escaping of agents' text
drawing    a component graph as SVG or Mermaid
html       one self-contained page
markdown   the same for a terminal, a pull request or a wiki
"""
