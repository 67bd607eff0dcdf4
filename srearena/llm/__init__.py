"""The model client: one way to call a large language model, for the LLM agent, the judge and the connection test.

messages            requests, replies and token usage, whatever the endpoint speaks
wires               request bodies and responses in each wire format
endpoint            an HTTP endpoint (`Endpoint`)
litellm_library     every other model, through LiteLLM (`LiteLlmLibrary`)
client              the retry loop that both share
pacing              rate limits, Retry-After and back-off
providers, prices   tables: who serves which model, and what tokens cost

Importing this package loads none of them. Only `endpoint` imports httpx.
"""
