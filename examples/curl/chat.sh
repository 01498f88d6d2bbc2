#!/bin/sh
# One question, one answer.
set -eu
: "${WEIR_API_KEY:?Set it to a key of your workspace.}"

curl --silent --show-error --fail-with-body "${WEIR_URL:-http://127.0.0.1:8080}/api/v1/chat/completions" \
  --header "Authorization: Bearer $WEIR_API_KEY" \
  --header 'Content-Type: application/json' \
  --data @- <<JSON
{
  "model": "${WEIR_CHAT_MODEL:-qwen/qwen2.5-coder-0.5b-instruct}",
  "messages": [{ "role": "user", "content": "What is the capital of Australia?" }],
  "max_tokens": 100
}
JSON
