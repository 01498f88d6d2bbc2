import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { within } from '../../support/waiting.ts'
import { cut, generatedAnswer, writtenAnswers } from './answers.ts'
import { explanations, type Explanation } from './differences.ts'
import { threeClients, type Outcome, type ThreeClients } from './three-clients.ts'
import { runLength } from '../../support/long-run.ts'

/** The same answers in every run. WEIR_SEED tries others. */
const SEED = Number(process.env['WEIR_SEED'] ?? 29)
const GENERATED = runLength(666, 2000)
const AT_A_TIME = 16

/** Two failures are the same, whatever the reason. */
const isSame = (one: Outcome, other: Outcome): boolean =>
  (one.kind === 'failed' && other.kind === 'failed') || isDeepStrictEqual(one, other)

async function severalAtATime(count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0
  async function workOn(): Promise<void> {
    while (next < count) await work(next++)
  }
  await Promise.all(Array.from({ length: AT_A_TIME }, workOn))
}

describe('an answer', () => {
  let clients: ThreeClients
  const used = new Set<Explanation>()

  before(async () => {
    clients = await threeClients()
  })
  after(() => clients.close())

  /** Has all three clients read an answer, and fails if ours differs from another one without an explanation. */
  async function compare(what: string, pieces: readonly string[]): Promise<Outcome> {
    const { ours, ...others } = await within(60_000, `${what}: all clients are done`, clients.ask(pieces))
    for (const client of ['undici', 'node'] as const) {
      const theirs = others[client]
      if (isSame(ours, theirs)) continue
      const difference = { answer: pieces.join(''), ours, theirs, client }
      const explanation = explanations.find((it) => it.explains(difference))
      if (!explanation) assert.deepEqual(ours, theirs, `${what}: ${client} differs for ${JSON.stringify(pieces)}`)
      else used.add(explanation)
    }
    return ours
  }

  it('means the same to this client, undici and node:http, except for documented differences', async () => {
    await severalAtATime(writtenAnswers.length, async (index) => {
      const [what, answer] = writtenAnswers[index]!
      const whole = await compare(what, [answer])
      const inPieces = await compare(`${what}, in pieces`, cut(answer, SEED))
      assert.ok(isSame(whole, inPieces), `${what}: means something else in pieces`)
    })
  })

  it('means the same when it is generated and damaged', async () => {
    const kinds = { answered: 0, failed: 0 }
    await severalAtATime(GENERATED, async (index) => {
      const seed = SEED + index
      const answer = generatedAnswer(seed)
      const { kind } = await compare(`seed ${seed}`, seed % 2 === 0 ? [answer] : cut(answer, seed))
      kinds[kind]++
    })
    // Otherwise the generator makes too little sense, or too much.
    assert.ok(kinds.answered > GENERATED / 4 && kinds.failed > GENERATED / 4, JSON.stringify(kinds))
  })

  // It looks at what the tests before it found.
  it('differs in each of the documented ways, and the README lists them', () => {
    const unused = explanations.filter((it) => !used.has(it)).map(({ why }) => why)
    assert.deepEqual(unused, [])
    const readme = readFileSync(
      new URL('../../../src/engines/http-client/README.md', import.meta.url),
      'utf8',
    ).replaceAll(/\s+/g, ' ')
    assert.deepEqual(
      explanations.map(({ why }) => why).filter((why) => !readme.includes(why)),
      [],
    )
  })
})
