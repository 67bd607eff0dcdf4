"""The part of a grade that needs meaning: a model reads explanations, and nothing else.

settings   endpoint, models and limits
rubric     the questions, the controls that detect an unreliable judge, parsing of replies
cache      replies by content, so that judging again is free and a stopped run can continue
client     requests through the model client (`srearena.llm`), with cache and retries
panel      several judges and votes, combined
"""
