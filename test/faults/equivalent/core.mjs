export default [
  {
    file: 'src/engines/refusal-text.ts',
    before: "const LEAD_LENGTH = 'for further information'.length + 1",
    after: "const LEAD_LENGTH = 'for further information'.length + 2",
    why: 'Nothing before that one character decides what leads to a link.',
  },
  {
    file: 'src/shared/money/money.ts',
    before: "const digits = (amount < 0n ? -amount : amount).toString().padStart(13, '0')",
    after: "const digits = (amount < 1n ? -amount : amount).toString().padStart(13, '0')",
    why: 'Nothing has no sign.',
  },
  {
    file: 'src/shared/json/json-body.ts',
    before: 'let valueStart = -1',
    after: 'let valueStart = -2',
    why: 'It only matters whether it is below 0.',
  },
  {
    file: 'src/shared/json/json-body.ts',
    before:
      'if (valueStart >= 0) fields.push({ name: decodeName(bytes, nameStart, nameEnd), start: nameStart, valueStart, end })',
    after:
      'if (valueStart >= 1) fields.push({ name: decodeName(bytes, nameStart, nameEnd), start: nameStart, valueStart, end })',
    why: 'A value is never the first byte: its name and a colon are before it.',
  },
  {
    file: 'src/shared/json/json-body.ts',
    before:
      'if (valueStart >= 0) fields.push({ name: decodeName(bytes, nameStart, nameEnd), start: nameStart, valueStart, end })',
    after:
      'if (valueStart > 0) fields.push({ name: decodeName(bytes, nameStart, nameEnd), start: nameStart, valueStart, end })',
    why: 'A value is never the first byte: its name and a colon are before it.',
  },
  {
    file: 'src/engines/http-client/message-head.ts',
    before: "const name = colon < 0 ? '' : head.slice(from, colon).toLowerCase()",
    after: "const name = colon <= 0 ? '' : head.slice(from, colon).toLowerCase()",
    why: 'A colon at the very beginning leaves an empty name in any case.',
  },
  {
    file: 'src/engines/http-client/deadlines.ts',
    before: 'timer = setTimeout(expire, Math.ceil(left)).unref()',
    after: 'timer = setTimeout(expire, Math.floor(left)).unref()',
    why: 'It checks again a fraction of a millisecond later.',
  },
  {
    file: 'src/inference/embeddings/embedding-list.ts',
    before: 'if (open < format.open.length) return undefined',
    after: 'if (open <= format.open.length) return undefined',
    why: 'The brace of an item is before its first field.',
  },
  {
    file: 'src/shared/json/json-body.ts',
    before: 'const near = Math.min(bytes.length, next + NEAR_BYTES)',
    after: 'const near = Math.max(bytes.length, next + NEAR_BYTES)',
    why: 'The loop finds the same end as the native search, only more slowly.',
  },
  {
    file: 'src/inference/embeddings/embedding-list.ts',
    before: "for (const character of '+-.0123456789Ee, \\n\\r\\t') numberBytes[character.charCodeAt(0)] = 1",
    after: "for (const character of '+-.0123456789Ee, \\n\\r\\t') numberBytes[character.charCodeAt(0)] = 2",
    why: 'It only matters whether it is 0.',
  },
  {
    file: 'src/shared/tokens/token-estimate.ts',
    before: 'for (let start = 0; start < text.length; start += piece.length) {',
    after: 'for (let start = 0; start <= text.length; start += piece.length) {',
    why: 'One more piece, of no characters.',
  },
  {
    file: 'src/shared/tokens/token-estimate.ts',
    before: 'let unit = 0',
    after: 'let unit = 1',
    why: 'The four digits move it out of the 16 bits that count.',
  },
  {
    file: 'src/queue/queue-simulation.ts',
    before: 'if (atMs <= durationMs) outputTokens += tokens',
    after: 'if (atMs < durationMs) outputTokens += tokens',
    why: 'No answer of a simulation ends in the very moment in which the measurement does.',
  },
  {
    file: 'src/engines/http-client/answer-reader.ts',
    before: 'this.#readFraming(buffer[at++] ?? 0)',
    after: 'this.#readFraming(buffer[at++] ?? 1)',
    why: 'Only the type checker needs a value: `at` is within the buffer.',
  },
  {
    file: 'src/engines/http-client/answer-reader.ts',
    before: '#left = -1',
    after: '#left = -2',
    why: 'It only matters whether it is below 0.',
  },
  {
    file: 'src/engines/http-client/message-head.ts',
    before: "const connection = String(headers['connection'] ?? '').toLowerCase()",
    after: "const connection = String(headers['connection'] ?? 'x').toLowerCase()",
    why: 'It only matters whether it contains two other words.',
  },
  {
    file: 'src/engines/http-client/message-head.ts',
    before: "const seconds = /timeout=(\\d+)/.exec(String(headers['keep-alive'] ?? ''))?.[1]",
    after: "const seconds = /timeout=(\\d+)/.exec(String(headers['keep-alive'] ?? 'x'))?.[1]",
    why: 'It only matters whether it contains a time-out.',
  },
  {
    file: 'src/engines/dialects/image-servers.ts',
    before: 'seconds: seconds > MAX_SECONDS ? seconds / 1e9 : output.seconds,',
    after: 'seconds: seconds >= MAX_SECONDS ? seconds / 1e9 : output.seconds,',
    why: 'The limit only separates seconds from nanoseconds, a billion of which make one.',
  },
  {
    file: 'src/shared/money/money.ts',
    before: "return BigInt(match[1] ?? '0') * PICO_PER_AUD + BigInt((match[2] ?? '').padEnd(12, '0'))",
    after: "return BigInt(match[1] ?? '') * PICO_PER_AUD + BigInt((match[2] ?? '').padEnd(12, '0'))",
    why: "BigInt('') is 0, too.",
  },
  {
    file: 'src/batches/poll.ts',
    before: 'let isWoken = false',
    after: 'let isWoken = true',
    why: 'Work begins only when it is woken.',
  },
  {
    file: 'src/local-models/supervisor.ts',
    before: 'return { crashes: 0, retryAt: 0, gpu: true }',
    after: 'return { crashes: 0, retryAt: 1, gpu: true }',
    why: 'Both times have passed long ago.',
  },
  {
    file: 'src/local-models/downloads.ts',
    before: 'received.filter(({ atMs }) => atMs > now() - SPEED_MS)',
    after: 'received.filter(({ atMs }) => atMs >= now() - SPEED_MS)',
    why: 'A shown speed is over five seconds, a millisecond more or less.',
  },
]
