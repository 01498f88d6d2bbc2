/** Compares Weir's token estimates with real tokenizers, by kind of text, and measures what an estimate costs. */
import { countTokens as countCl100k } from 'gpt-tokenizer/encoding/cl100k_base'
import { countTokens as countO200k } from 'gpt-tokenizer/encoding/o200k_base'
import { figure } from './figures.ts'
import { textTokens } from '../src/shared/tokens/token-estimate.ts'
import { corpus } from './token-corpus.ts'

const counters = { cl100k_base: countCl100k, o200k_base: countO200k }
const ways = ['named.charged', 'named.likely', 'unnamed.charged', 'unnamed.likely']
const columns = ['tokens', 'charged', 'likely', 'charged', 'likely']

console.log(`${' '.repeat(26)}${' '.repeat(28)}as a share of the tokens, when the tokenizer is`)
for (const [name, count] of Object.entries(counters)) {
  console.log(`\n${name.padEnd(26)}${'bytes/token'.padStart(12)}${' '.repeat(12)}named${' '.repeat(14)}not named`)
  console.log(' '.repeat(38) + columns.map((column) => column.padStart(10)).join(''))
  for (const [kind, text] of Object.entries(corpus)) {
    const tokens = count(text)
    const named = textTokens(text, name)
    const unnamed = textTokens(text, undefined)
    const shares = [named.charged, named.likely, unnamed.charged, unnamed.likely].map((estimate) => estimate / tokens)
    for (const [index, share] of shares.entries()) {
      figure(`${kind}.${ways[index]}.${name}`, { unit: '', digits: 2 }, [share])
    }
    console.log(
      kind.padEnd(26) +
        (Buffer.byteLength(text) / tokens).toFixed(2).padStart(12) +
        String(tokens).padStart(10) +
        shares.map((share) => share.toFixed(2).padStart(10)).join(''),
    )
  }
}

console.log('\nCost of an estimate')
for (const characters of [2000, 100_000, 1_000_000]) {
  const text = 'Tell me about the river and its weir. '.repeat(Math.ceil(characters / 38)).slice(0, characters)
  const rounds = Math.ceil(20_000_000 / characters)
  for (let round = 0; round < rounds; round++) textTokens(text, 'llama3')
  const startedAtMs = performance.now()
  for (let round = 0; round < rounds; round++) textTokens(text, 'llama3')
  const microseconds = ((performance.now() - startedAtMs) * 1000) / rounds
  figure(`cost.${characters}`, { unit: 'µs', digits: 1 }, [microseconds])
  const perCharacter = ((microseconds * 1000) / characters).toFixed(2)
  console.log(
    `${String(characters).padStart(9)} characters ${microseconds.toFixed(1).padStart(9)} µs, ${perCharacter} ns each`,
  )
}
