"""Waits as long as Retry-After asks, then tries again. pip install openai, then: python3 retry.py

The SDK does this twice by itself (OpenAI(max_retries=5) makes it five times). A job that should outlast a busy hour
needs more patience, and a random part in its pauses: callers that come back together fill the queue together.
"""

import os
import random
import time

from openai import APIStatusError, OpenAI

# 429: over the rate limit, or the queue is full. 503: waited too long in the queue, or the model is not ready yet.
# Everything else is either a mistake in the request or a failure that the SDK has already retried.
WORTH_WAITING = (429, 503)

client = OpenAI(
    base_url=os.environ.get("WEIR_URL", "http://127.0.0.1:8080") + "/api/v1",
    api_key=os.environ["WEIR_API_KEY"],
)


def with_patience(call, seconds=600):
    """Repeats call() while the service says to come back later, for this many seconds at most."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return call()
        except APIStatusError as error:
            pause = float(error.response.headers.get("retry-after", 5)) + random.uniform(0, 2)
            if error.status_code not in WORTH_WAITING or time.monotonic() + pause > deadline:
                raise
            print(f"{error.status_code} {error.code}: trying again in {pause:.1f} s")
            time.sleep(pause)


completion = with_patience(
    lambda: client.chat.completions.create(
        model=os.environ.get("WEIR_CHAT_MODEL", "qwen/qwen2.5-coder-0.5b-instruct"),
        messages=[{"role": "user", "content": "What is the capital of Australia?"}],
        max_tokens=100,
    )
)
print(completion.choices[0].message.content)
