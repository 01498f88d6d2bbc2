import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { promptHasher, type PromptBlocks } from '../../src/engines/prefix/prompt-blocks.ts'
import { choose } from '../../src/engines/prefix/choose.ts'
import {
  charactersOfBlocks,
  forget,
  learn,
  resize,
  saltedPrompt,
  sent,
  shareOf,
  warmPrefixes,
  type Prompt,
  type WarmPrefixes,
} from '../../src/engines/prefix/warm-prefixes.ts'

const names = ['http://a:8000/v1', 'http://b:8000/v1', 'http://c:8000/v1', 'http://d:8000/v1']
const CAPACITY = 1_000_000

function blocksOf(...texts: string[]): PromptBlocks {
  const hasher = promptHasher()
  for (const [index, text] of texts.entries()) {
    hasher.beginMessage(index % 2 === 1)
    for (let from = 0; from < text.length; from += 8192) hasher.text(text.slice(from, from + 8192))
    hasher.endMessage()
  }
  return hasher.result()
}

const promptOf = (...texts: string[]): Prompt => saltedPrompt(blocksOf(...texts), 'workspace')
const prose = (length: number, seed: number): string => `${seed} `.repeat(length).slice(0, length)

/** Sends a prompt where it should go, and returns that. */
function send(state: WarmPrefixes, prompt: Prompt, loads: readonly (number | undefined)[]): number {
  const choice = choose(state, prompt, loads)!
  sent(state, choice, prompt)
  return choice.index
}

describe('the address for a prompt', () => {
  it('is where its beginning went before', () => {
    const state = warmPrefixes(names, CAPACITY)
    for (let session = 1; session <= 20; session++) {
      const turns = [prose(6000, session)]
      const home = send(state, promptOf(...turns), [0, 0, 0, 0])
      for (let turn = 0; turn < 5; turn++) {
        turns.push(prose(400, turn), prose(900, turn))
        assert.equal(send(state, promptOf(...turns), [1, 1, 1, 1]), home)
      }
    }
  })

  it('is the same for every replica when the prompt is new, in whatever order they list the addresses', () => {
    const seen = new Set<string>()
    for (let seed = 1; seed <= 40; seed++) {
      const prompt = promptOf(prose(3000, seed))
      const one = names[choose(warmPrefixes(names, CAPACITY), prompt, [0, 0, 0, 0])!.index]!
      const turned = names.toReversed()
      assert.equal(turned[choose(warmPrefixes(turned, CAPACITY), prompt, [0, 0, 0, 0])!.index], one)
      seen.add(one)
    }
    assert.deepEqual([...seen].toSorted(), names, 'and all addresses get some')
  })

  it('is the same for a burst with a new prefix, with different questions and through several replicas', () => {
    const replicas = [1, 2, 3].map(() => ({ state: warmPrefixes(names, CAPACITY), loads: [0, 0, 0, 0] }))
    const used = new Set<number>()
    for (let request = 0; request < 9; request++) {
      const { state, loads } = replicas[request % 3]!
      const index = send(state, promptOf(prose(8000, 7) + `question ${request}`), loads)
      loads[index]!++
      used.add(index)
    }
    assert.equal(used.size, 1)
  })

  it('depends on the whole opening once every address knows most of it, so that conversations spread', () => {
    const state = warmPrefixes(names, CAPACITY)
    const shared = prose(8000, 7)
    const idle = [0, 0, 0, 0]
    for (const index of names.keys())
      sent(state, { ...choose(state, promptOf(shared), idle)!, index }, promptOf(shared))
    const homes = (beginning: string): number =>
      new Set(
        Array.from({ length: 20 }, (_, number) => {
          const prompt = promptOf(shared + beginning + prose(2000, number))
          return choose(state, prompt, idle)!.index
        }),
      ).size
    assert.equal(homes(prose(2000, 8)), names.length)
    assert.equal(homes(prose(20_000, 8)), 1, 'a new prefix that is longer goes to one address')
  })

  it('changes for a hot prefix before its engine has far more calls than the others', () => {
    const state = warmPrefixes(names, CAPACITY)
    const loads = [0, 0, 0, 0]
    for (let request = 0; request < 400; request++) {
      loads[send(state, promptOf(prose(120_000, 7) + `question ${request}`), loads)]!++
      // Each fourth request ends somewhere.
      const busiest = loads.indexOf(Math.max(...loads))
      if (request >= 64) loads[busiest]!--
      if (request > 100) assert.ok(Math.max(...loads) <= 2 * (Math.min(...loads) + 4), loads.join())
    }
    assert.ok(Math.min(...loads) > 8, `every address took part: ${loads.join()}`)
  })

  it('stays where it is warm if another one is idle only now and then', () => {
    const state = warmPrefixes(names.slice(0, 2), CAPACITY)
    const home = send(state, promptOf(prose(8000, 7)), [0, 0])
    for (let request = 0; request < 400; request++) {
      const loads = [3, 3]
      loads[home]! += request % 2 === 0 ? 2 : -2
      assert.equal(send(state, promptOf(prose(8000, 7) + `question ${request}`), loads), home, `request ${request}`)
    }
  })

  for (const known of [0, 3000]) {
    it(`changes when waiting has cost as much as computing the prefix again, of which the other knows ${known} characters`, () => {
      const state = warmPrefixes(names.slice(0, 2), CAPACITY)
      const prompt = promptOf(prose(8000, 7))
      const beginning = promptOf(prose(known, 7))
      const home = send(state, prompt, [0, 0])
      const choice = choose(state, prompt, [0, 0])!
      sent(state, { ...choice, index: 1 - home }, beginning)
      const warm = charactersOfBlocks(prompt, prompt.keys.length)
      const price = (warm - charactersOfBlocks(beginning, beginning.keys.length)) * (1 + 1)
      const loads = [1, 1]
      loads[home] = 5
      let owed = 0
      for (let earlier = 2; ; earlier++) {
        const choice = choose(state, prompt, loads)!
        // The first two calls came without any load, and each of the others with four calls more at home.
        owed += (prompt.characters - warm + 1024) * ((4 * (earlier - 2)) / earlier)
        const isDue = owed >= price
        assert.equal(choice.index === home, !isDue, `call ${earlier}`)
        if (earlier > 2) assert.ok(Math.abs(choice.debt!.characters - (isDue ? 0 : owed)) < 1e-6, `call ${earlier}`)
        sent(state, choice, prompt)
        assert.equal(state.debts.size, earlier > 2 && !isDue ? 1 : 0)
        if (isDue) break
      }
    })
  }

  it('is the same for replicas that do not know a prefix, even if their own calls differ by chance', () => {
    const busy = [8, 8, 8, 8]
    for (let seed = 1; seed <= 20; seed++) {
      const prompt = promptOf(prose(3000, seed))
      const { index } = choose(warmPrefixes(names, CAPACITY), prompt, busy)!
      const more = busy.map((load, at) => (at === index ? load + 3 : load - 1))
      assert.equal(choose(warmPrefixes(names, CAPACITY), prompt, more)?.index, index)
    }
  })

  it('is the least busy one if the prompt has no blocks', () => {
    const empty: Prompt = { keys: [], ends: [], characters: 10, opening: 0, previous: 0 }
    assert.equal(choose(warmPrefixes(names, CAPACITY), empty, [3, 2, 0, 1])?.index, 2)
  })

  it('is never one that must not be used', () => {
    const state = warmPrefixes(names, CAPACITY)
    const prompt = promptOf(prose(5000, 1))
    const home = send(state, prompt, [0, 0, 0, 0])
    const loads = [0, 0, 0, 0].map((load, index) => (index === home ? undefined : load))
    assert.notEqual(choose(state, prompt, loads)?.index, home)
    assert.equal(choose(state, prompt, [undefined, undefined, undefined, undefined]), undefined)
  })

  it('depends on nothing that another workspace sent', () => {
    const state = warmPrefixes(names, CAPACITY)
    const blocks = blocksOf(prose(9000, 3))
    const mine = saltedPrompt(blocks, 'ws_1')
    send(state, mine, [5, 5, 0, 5])
    const theirs = saltedPrompt(blocks, 'ws_2')
    assert.equal(choose(state, theirs, [0, 0, 0, 0])?.deepest, 0)
    const fresh = warmPrefixes(names, CAPACITY)
    assert.deepEqual(choose(state, theirs, [0, 0, 0, 0]), choose(fresh, theirs, [0, 0, 0, 0]))
  })
})

describe('the record of what an address was sent', () => {
  it('stays within the size of its cache, and loses the end of a prompt before its beginning', () => {
    const state = warmPrefixes(['one'], 20_000)
    const first = promptOf(prose(12_000, 1))
    send(state, first, [0])
    send(state, promptOf(prose(12_000, 2)), [0])
    const { deepest } = choose(state, first, [0])!
    assert.ok(deepest > 0 && deepest < first.keys.length, String(deepest))
    assert.ok(state.addresses[0]!.held <= 20_000)
    for (let seed = 3; seed < 50; seed++) send(state, promptOf(prose(12_000, seed)), [0])
    assert.equal(choose(state, first, [0])!.deepest, 0)
    assert.ok(state.addresses[0]!.blocks.size < 200)
  })

  it('has up to 10,000 debts and as many divided conversations', () => {
    const state = warmPrefixes(['one'], CAPACITY)
    for (let key = 1; key <= 10_000; key++) {
      state.debts.set(-key, 1)
      if (key < 10_000) state.divided.add(-key)
    }
    const note = (seed: number, key: number): void => {
      const prompt = promptOf(prose(5000, seed))
      sent(state, { ...choose(state, prompt, [0])!, isDivided: true, debt: { key, characters: 1 } }, prompt)
    }
    note(1, -10_000)
    assert.deepEqual([state.debts.size, state.debts.has(-1), state.divided.size], [10_000, true, 10_000])
    note(2, -10_001)
    assert.deepEqual([state.debts.size, state.debts.has(-1), state.divided.size], [10_000, false, 0])
  })

  it('has a million blocks at most, for all addresses together', () => {
    const state = warmPrefixes(['one', 'two'], Infinity)
    const [address] = state.addresses
    for (let key = 1; key <= 500_000; key++) address!.blocks.set(-key, 1)
    const prompt = promptOf('x'.repeat(600))
    sent(state, { ...choose(state, prompt, [0, 0])!, index: 0 }, prompt)
    assert.equal(address!.blocks.size, 500_000)
    assert.ok(!address!.blocks.has(-prompt.keys.length) && address!.blocks.has(-prompt.keys.length - 1))
  })

  it('is forgotten when its engine is removed', () => {
    const state = warmPrefixes(['one'], CAPACITY)
    const prompt = promptOf(prose(5000, 1))
    send(state, prompt, [0])
    forget(state, 0)
    assert.equal(choose(state, prompt, [0])!.deepest, 0)
    assert.equal(state.addresses[0]!.held, 0)
  })

  it('is forgotten when cached tokens are missing twice, but only if the engine reports them', () => {
    for (const isTelling of [true, false]) {
      const state = warmPrefixes(['one'], CAPACITY)
      const prompts = [1, 2, 3].map((seed) => promptOf(prose(5000, seed)))
      for (const prompt of prompts) send(state, prompt, [0])
      const again = (prompt: Prompt, cachedTokens: number): void => {
        const choice = choose(state, prompt, [0])!
        sent(state, choice, prompt)
        learn(state, choice, prompt, cachedTokens)
      }
      if (isTelling) again(prompts[0]!, 1200)
      again(prompts[0]!, 0)
      assert.equal(shareOf(prompts[1]!, choose(state, prompts[1]!, [0])!.depth), 1, 'one surprise may be an eviction')
      again(prompts[0]!, 0)
      assert.equal(choose(state, prompts[1]!, [0])!.depth > 0, !isTelling)
      assert.ok(choose(state, prompts[0]!, [0])!.depth > 0, 'the prompt that it just read is there')
    }
  })
})

describe('the size of a cache', () => {
  it('may become known later; the excess is then forgotten, the oldest first', () => {
    const state = warmPrefixes(['http://a'], CAPACITY)
    const prompts = [1, 2, 3].map((seed) => promptOf(prose(20_000, seed)))
    for (const prompt of prompts) send(state, prompt, [0])
    resize(state, 0, 30_000)
    send(state, prompts[2]!, [0])
    const shares = prompts.map((prompt) => shareOf(prompt, choose(state, prompt, [0])!.depth))
    assert.ok(shares[0] === 0 && shares[1]! < 0.6 && shares[2]! > 0.95, String(shares))
  })
})

describe('prompts with unique beginnings', () => {
  it('go to the least busy address once that is evident, and share one again once they recur', () => {
    const state = warmPrefixes(names, CAPACITY)
    const loads = [2, 2, 1, 2]
    const places = (seeds: readonly number[]): Set<number> =>
      new Set(seeds.map((seed) => choose(state, promptOf(prose(3000, seed)), loads)!.index))
    assert.ok(places([1, 2, 3, 4, 5, 6, 7, 8]).size > 1, 'replicas agree on an address by its hash')
    for (let seed = 100; seed < 400; seed++) send(state, promptOf(prose(3000, seed)), loads)
    assert.deepEqual([...places([1, 2, 3, 4, 5, 6, 7, 8])], [2])
    for (let times = 0; times < 100; times++) send(state, promptOf(prose(3000, 100)), loads)
    assert.ok(places([1, 2, 3, 4, 5, 6, 7, 8]).size > 1)
  })
})
