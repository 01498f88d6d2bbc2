import { readFile } from 'node:fs/promises'

interface TokenizerFile {
  readonly vocab: readonly string[]
  readonly unk: number
  readonly bos: number
  readonly ans: number
  readonly eos: number
}

export interface StarterTokenizer {
  readonly begin: number
  readonly answer: number
  readonly end: number
  encode(text: string): number[]
  decode(ids: readonly number[]): string
}

/** Lower-case words and single marks, each split greedily into the longest known pieces. `##` continues a word. */
export async function loadStarterTokenizer(path: string): Promise<StarterTokenizer> {
  const { vocab, unk, bos, ans, eos } = JSON.parse(await readFile(path, 'utf8')) as TokenizerFile
  const ids = new Map(vocab.map((piece, id) => [piece, id]))

  function encodeWord(word: string): number[] {
    const pieces: number[] = []
    let start = 0
    while (start < word.length) {
      let end = word.length
      let id: number | undefined
      for (; end > start; end--) {
        id = ids.get((start > 0 ? '##' : '') + word.slice(start, end))
        if (id !== undefined) break
      }
      pieces.push(id ?? unk)
      start = id === undefined ? start + 1 : end
    }
    return pieces
  }

  return {
    begin: bos,
    answer: ans,
    end: eos,
    encode: (text) => (text.toLowerCase().match(/[a-z0-9]+|[^\sa-z0-9]/gu) ?? []).flatMap(encodeWord),
    decode(tokens) {
      let text = ''
      for (const token of tokens) {
        const piece = vocab[token] ?? ''
        text += piece.startsWith('##') ? piece.slice(2) : text === '' ? piece : ` ${piece}`
      }
      return text
    },
  }
}
