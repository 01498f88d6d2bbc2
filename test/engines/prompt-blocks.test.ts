import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, it } from 'node:test'
import { promptHasher, textHash, type PromptBlocks } from '../../src/engines/prefix/prompt-blocks.ts'
import { saltedPrompt } from '../../src/engines/prefix/warm-prefixes.ts'
import { prepareCompletions } from '../../src/inference/completions/job.ts'
import { chatPrompt } from '../../src/inference/chat/prompt.ts'
import type { Deployment, Model } from '../../src/catalog/model.ts'
import { HEADROOM, parseJsonObject, scanJson, type JsonBody } from '../../src/shared/json/json-body.ts'

const deployment = { engine: { balance: 'prefix' } } as Deployment
const jsonBody = (value: object): JsonBody => {
  const bytes = Buffer.from(' '.repeat(HEADROOM) + JSON.stringify(value))
  return parseJsonObject(bytes, scanJson(bytes))
}
const prose = (length: number, seed = 1): string => {
  let text = ''
  for (let state = seed; text.length < length; state = (state * 48_271) % 2_147_483_647)
    text += `${state.toString(36)} `
  return text.slice(0, length)
}
const chat = (messages: object[], more: object = {}): PromptBlocks | undefined =>
  chatPrompt(jsonBody({ ...more, messages }), deployment)
const hashes = (prompt: PromptBlocks | undefined): number[] => prompt!.blocks.map(({ first }) => first)

const system = { role: 'system', content: prose(5000) }
const question = { role: 'user', content: 'What is this?' }

describe('the blocks of a prompt', () => {
  it('of one turn are the first blocks of the next', () => {
    const turns: object[] = [system, question]
    let before: PromptBlocks | undefined
    for (let turn = 1; turn <= 30; turn++) {
      const now = chat(turns)!
      if (before) {
        assert.deepEqual(hashes(now).slice(0, now.previous), hashes(before).slice(0, now.previous))
        assert.ok(before.blocks.length - now.previous <= 1, 'at most the end of a block is lost')
        assert.equal(now.opening, chat([system, question])!.opening)
      }
      before = now
      turns.push(
        { role: 'assistant', content: prose(300 * turn, turn) },
        { role: 'user', content: prose(77 * turn, turn) },
      )
    }
  })

  it('differ from the first change on, and not before', () => {
    const changed = { ...system, content: `${system.content.slice(0, 3000)}X${system.content.slice(3001)}` }
    const one = chat([system, question])!
    const other = chat([changed, question])!
    const first = one.blocks.findIndex((block, index) => block.first !== other.blocks[index]!.first)
    assert.ok(one.blocks[first - 1]!.end <= 3000 + 'system'.length && one.blocks[first]!.end > 3000)
    assert.ok(one.blocks.slice(first).every((block, index) => block.first !== other.blocks[first + index]!.first))
    const own = one.blocks.filter((block, index) => block.own !== other.blocks[index]!.own)
    assert.equal(own.length, 1, 'by itself, only the block with the change differs')
  })

  it('cover tools, roles, calls and images', () => {
    const image = (url: string): object => ({ role: 'user', content: [{ type: 'image_url', image_url: { url } }] })
    const call = (name: string): object => ({
      role: 'assistant',
      content: null,
      tool_calls: [{ id: '1', type: 'function', function: { name, arguments: `{"text":"${prose(300)}"}` } }],
    })
    const variants = [
      chat([system, question]),
      chat([system, question], { tools: [{ type: 'function', function: { name: 'a' } }] }),
      chat([{ ...system, role: 'user' }, question]),
      chat([system, question, call('one')]),
      chat([system, question, call('two')]),
      chat([system, image('data:image/png;base64,AAAA')]),
      chat([system, image('data:image/png;base64,AAAB')]),
      chat([system, { role: 'user', content: [{ type: 'text', text: 'Another' }] }]),
    ].map((prompt) => hashes(prompt).join())
    assert.equal(new Set(variants).size, variants.length)
  })

  it('are few, however long the prompt and however many its messages', () => {
    const hasher = promptHasher()
    for (let piece = 0; piece < 2560; piece++) hasher.text(prose(8192, piece + 1))
    const long = hasher.result()
    assert.equal(long.characters, 2560 * 8192)
    assert.ok(long.blocks.length < 1000, String(long.blocks.length))
    const messages = Array.from({ length: 10_000 }, (_, index) => ({
      role: index % 2 ? 'assistant' : 'user',
      content: 'ok',
    }))
    assert.ok(chat(messages)!.blocks.length < 2000)
  })

  it('end after 256 characters, or with a message from a quarter of that on, and grow with the prompt', () => {
    const ends = (...messages: readonly number[]): number[] => {
      const hasher = promptHasher()
      for (const length of messages) {
        hasher.beginMessage(false)
        hasher.text('x'.repeat(length))
        hasher.endMessage()
      }
      return hasher.result().blocks.map(({ end }) => end)
    }
    assert.deepEqual(ends(255), [255])
    assert.deepEqual(ends(257), [256, 257])
    assert.deepEqual(ends(63, 1000), [256, 512, 768, 1024, 1063])
    assert.deepEqual(ends(64, 1000), [64, 320, 576, 832, 1064])
    const long = ends(40_000)
    const sizes = long.map((end, index) => end - (long[index - 1] ?? 0)).slice(0, -1)
    for (const [index, size] of sizes.entries()) {
      assert.equal(size, Math.max(256, Math.floor((long[index - 1] ?? 0) / 64)))
    }
    const hasher = promptHasher()
    hasher.image('data:,')
    assert.deepEqual(
      hasher.result().blocks.map(({ end }) => end),
      [1024],
    )
  })

  it('have the same hashes in every version, so that replicas of two versions agree', () => {
    const hasher = promptHasher()
    for (const [index, length] of [301, 70, 2, 999].entries()) {
      hasher.beginMessage(index % 2 === 1)
      hasher.text(prose(length, index + 1))
      hasher.endMessage()
    }
    hasher.image('data:image/png;base64,AAAA')
    const { blocks, ...rest } = hasher.result()
    const text = blocks.map((block) => Object.values(block).join(' ')).join('\n')
    assert.equal(
      createHash('sha256').update(text).digest('hex'),
      '9a1a4c73b377a248eac1e8698a6309b118acf9788cf74dc61f24b6343c6d2747',
    )
    assert.deepEqual(rest, { characters: 2396, opening: 2, previous: 3 })
    assert.equal(textHash('http://a:8000/v1'), 186_027_638)
    assert.deepEqual(saltedPrompt({ blocks: blocks.slice(0, 1), ...rest }, 'ws_1').keys, [2_989_157_021_479_945])
  })

  it('are not computed if they would be of no use', () => {
    assert.equal(chat([question]), undefined)
    const body = jsonBody({ messages: [system, question] })
    assert.equal(chatPrompt(body, { engine: { balance: 'least_busy' } } as Deployment), undefined)
    const completions = (prompt: string | string[], balance: string): PromptBlocks | undefined => {
      const engine = { kind: 'vllm', balance, urls: [] }
      const model = { id: 'a/b', categories: ['llm'], contextLength: 10_000, supportedParameters: [] }
      const of = { engine, limits: {} } as unknown as Deployment
      return prepareCompletions(jsonBody({ model: 'a/b', prompt }), model as unknown as Model, of).terms.prompt
    }
    const [long, short] = [prose(512), prose(511)]
    assert.equal(completions(long, 'prefix')?.characters, 512)
    for (const [prompt, balance] of [
      [long, 'least_busy'],
      [short, 'prefix'],
      [[long, long], 'prefix'],
    ] as const) {
      assert.equal(completions(prompt as string, balance), undefined)
    }
  })
})
