#!/bin/sh
# weir in a container: everything is installed, and Node is the image's own. The flags are those of scripts/bootstrap.mjs.
exec node --max-semi-space-size=16 --no-allocation-site-pretenuring /app/src/main.ts "$@"
