  SURVIVED src/http/console/live-stream.ts:60 (3673ms) "true" -> "false"
  SURVIVED src/http/console/live-stream.ts:41 (988ms) "0" -> "1"
