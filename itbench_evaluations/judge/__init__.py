"""The part of a grade that needs meaning: a model reads explanations, and nothing else.

settings   which endpoint, models and limits
rubric     what is asked, the controls that keep a judge honest, how replies are read
pacing     rate limits, pauses and back-off
cache      replies by content, so that asking again is free and a stopped run goes on
client     an OpenAI-compatible endpoint, with retries
panel      several judges and votes, put together
"""
