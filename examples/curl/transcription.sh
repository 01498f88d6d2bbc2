#!/bin/sh
# transcription.sh RECORDING: what was said in it. A form, not JSON; at most 25 MiB (docs/guides/long-recordings.md).
set -eu
: "${WEIR_API_KEY:?Set it to a key of your workspace.}"
: "${1:?Give the name of a recording.}"

curl --silent --show-error --fail-with-body "${WEIR_URL:-http://127.0.0.1:8080}/api/v1/audio/transcriptions" \
  --header "Authorization: Bearer $WEIR_API_KEY" \
  --form "model=${WEIR_SPEECH_MODEL:-openai/whisper-base}" \
  --form language=en \
  --form "file=@$1"
