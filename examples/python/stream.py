"""An answer token by token. pip install openai, then: python3 stream.py"""

import os

from openai import OpenAI

client = OpenAI(
    base_url=os.environ.get("WEIR_URL", "http://127.0.0.1:8080") + "/api/v1",
    api_key=os.environ["WEIR_API_KEY"],
)

stream = client.chat.completions.create(
    model=os.environ.get("WEIR_CHAT_MODEL", "qwen/qwen2.5-coder-0.5b-instruct"),
    messages=[{"role": "user", "content": "What is the capital of Australia?"}],
    max_tokens=100,
    stream=True,
    stream_options={"include_usage": True},
)

# If the engine breaks off, the loop raises: a stream that ends quietly is complete.
for chunk in stream:
    if chunk.choices:
        print(chunk.choices[0].delta.content or "", end="", flush=True)
    if chunk.usage:
        print(f"\n{chunk.usage.total_tokens} tokens")
