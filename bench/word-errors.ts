/** The share of words that are wrong, missing or too many, without capitals and punctuation. */
export function wordErrorRate(expected: string, transcript: string): number {
  const words = (text: string): readonly string[] => text.toLowerCase().match(/[\p{L}']+/gu) ?? []
  const [expectedWords, got] = [words(expected), words(transcript)]
  let row = Array.from({ length: got.length + 1 }, (_, index) => index)
  for (const [i, word] of expectedWords.entries()) {
    const next = [i + 1]
    for (const [j, other] of got.entries()) {
      next.push(Math.min((row[j] ?? 0) + (word === other ? 0 : 1), (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1))
    }
    row = next
  }
  return (row.at(-1) ?? 0) / expectedWords.length
}

/** The share of these words that a text does not contain, in any form: `play` is in `playing`. */
export function missingWords(expectedWords: string, text: string): number {
  const words = expectedWords.split(' ')
  return words.filter((word) => !text.toLowerCase().includes(word)).length / words.length
}
