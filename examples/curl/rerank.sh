#!/bin/sh
# Documents in the order of their relevance to a query, best first, with scores from 0 to 1.
set -eu
: "${WEIR_API_KEY:?Set it to a key of your workspace.}"

curl --silent --show-error --fail-with-body "${WEIR_URL:-http://127.0.0.1:8080}/api/v1/rerank" \
  --header "Authorization: Bearer $WEIR_API_KEY" \
  --header 'Content-Type: application/json' \
  --data @- <<JSON
{
  "model": "${WEIR_RERANKER_MODEL:-weir/minilm-rerank}",
  "query": "What is a weir?",
  "documents": ["Hobart is a city in Tasmania.", "A weir is a low dam across a river.", "Eels are caught in traps."],
  "top_n": 2,
  "return_documents": true
}
JSON
