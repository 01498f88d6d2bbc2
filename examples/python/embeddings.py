"""How alike two texts are. pip install openai, then: python3 embeddings.py"""

import math
import os

from openai import OpenAI

client = OpenAI(
    base_url=os.environ.get("WEIR_URL", "http://127.0.0.1:8080") + "/api/v1",
    api_key=os.environ["WEIR_API_KEY"],
)

answer = client.embeddings.create(
    model=os.environ.get("WEIR_EMBEDDING_MODEL", "sentence-transformers/all-minilm-l6-v2"),
    input=["A weir is a low dam across a river.", "A barrier that raises the water level of a stream."],
)
one, other = (item.embedding for item in answer.data)


def product(left, right):
    return sum(x * y for x, y in zip(left, right))


similarity = product(one, other) / math.sqrt(product(one, one) * product(other, other))
print(f"{len(one)} dimensions, similarity {similarity:.3f}")
