#!/bin/sh
# weir in a container: everything is installed, and Node is the image's own. The flags are those of scripts/bootstrap.mjs.
exec node --max-semi-space-size=16 --no-parallel-scavenge --invocation-count-for-maglev=100 \
  --invocation-count-for-turbofan=250 --minimum-invocations-after-ic-update=100 \
  --concurrent-recompilation-queue-length=64 /app/src/main.ts "$@"
