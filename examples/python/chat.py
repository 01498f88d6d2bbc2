"""One question, one answer. pip install openai, then: python3 chat.py"""

import os

from openai import OpenAI

client = OpenAI(
    base_url=os.environ.get("WEIR_URL", "http://127.0.0.1:8080") + "/api/v1",
    api_key=os.environ["WEIR_API_KEY"],
)

response = client.chat.completions.with_raw_response.create(
    model=os.environ.get("WEIR_CHAT_MODEL", "qwen/qwen2.5-coder-0.5b-instruct"),
    messages=[{"role": "user", "content": "What is the capital of Australia?"}],
    max_tokens=100,
)
completion = response.parse()

print(completion.choices[0].message.content)
print(f"{completion.usage.total_tokens} tokens, {response.headers['x-queue-wait-ms']} ms in the queue")
