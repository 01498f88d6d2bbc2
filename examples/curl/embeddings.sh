#!/bin/sh
# A vector for each text.
set -eu
: "${WEIR_API_KEY:?Set it to a key of your workspace.}"

curl --silent --show-error --fail-with-body "${WEIR_URL:-http://127.0.0.1:8080}/api/v1/embeddings" \
  --header "Authorization: Bearer $WEIR_API_KEY" \
  --header 'Content-Type: application/json' \
  --data @- <<JSON
{
  "model": "${WEIR_EMBEDDING_MODEL:-sentence-transformers/all-minilm-l6-v2}",
  "input": ["A weir is a low dam across a river.", "Hobart is a city in Tasmania."]
}
JSON
