"""LogQL, Loki's query language: a handwritten parser, and evaluation over the log store.

lexer, parser, syntax      text to tree, with the real server's complaints
stages and what they use   what happens to one line: filters, parsers, formats
samples, windows, vectors  lines to numbers, numbers to series, series to series
engine                     a tree and a stretch of time to an answer
"""
