export default [
  {
    file: 'src/core/token-estimate.ts',
    before: 'for (let start = 0; start < text.length; start += piece.length) {',
    after: 'for (let start = 0; start <= text.length; start += piece.length) {',
    why: 'One more piece, of no characters.',
  },
  {
    file: 'src/core/token-estimate.ts',
    before: 'let unit = 0',
    after: 'let unit = 1',
    why: 'The four digits move it out of the 16 bits that count.',
  },
  {
    file: 'src/core/admission/queue-simulation.ts',
    before: 'if (atMs <= durationMs) outputTokens += tokens',
    after: 'if (atMs < durationMs) outputTokens += tokens',
    why: 'No answer of a simulation ends in the very moment in which the measurement does.',
  },
]
