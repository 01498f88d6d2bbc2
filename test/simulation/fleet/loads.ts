import { promptHasher, type PromptBlocks } from '../../../src/engines/prefix/prompt-blocks.ts'
import { seededRandom } from '../../../src/shared/seeded-random.ts'
import { CHUNK_TOKENS } from './engine.ts'

/** Requests as people and programs send them. All of a load depends on its seed alone. */
export interface Load {
  readonly name: string
  /** Requests that follow each other: the next is sent when the one before has its answer. */
  readonly sessions: readonly Session[]
  /** How many sessions run at a time, for each engine. */
  readonly sessionsPerEngine: number
}

export interface Session {
  readonly requests: readonly LoadRequest[]
  /** Before each request but the first: a tool runs, or a person reads. */
  readonly pauseMs: number
}

export interface LoadRequest {
  readonly prompt: PromptBlocks
  readonly tokens: number
  readonly output: number
  readonly chunks: readonly number[]
  readonly chunksAfter: readonly number[]
}

const CHARACTERS_PER_TOKEN = 4
const CHUNK_CHARACTERS = CHUNK_TOKENS * CHARACTERS_PER_TOKEN

export interface Message {
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  readonly content: string
}

/** Coding agents: few system prompts, long sessions that grow with every tool call. */
export function agents(seed: number, sessionCount: number): Load {
  const make = maker(seed)
  const systems = [6000, 4000, 2500].map((tokens) => make.text(tokens))
  const sessions = Array.from({ length: sessionCount }, () => {
    const messages: Message[] = [
      { role: 'system', content: make.oneOf(systems) },
      { role: 'user', content: make.text(make.between(20, 400)) },
    ]
    const requests = Array.from({ length: make.between(5, 15) }, () => {
      const answer = make.text(make.between(50, 200))
      const request = requestOf(messages, answer)
      messages.push({ role: 'assistant', content: answer })
      messages.push({ role: 'tool', content: make.text(make.between(100, 1500)) })
      return request
    })
    return { requests, pauseMs: make.between(200, 2000) }
  })
  return { name: 'agents', sessions, sessionsPerEngine: 16 }
}

/** People who chat: short messages, long pauses, one system prompt for each of many products. */
export function conversations(seed: number, sessionCount: number): Load {
  const make = maker(seed)
  const systems = Array.from({ length: 24 }, () => make.text(make.between(200, 1500)))
  const sessions = Array.from({ length: sessionCount }, () => {
    const messages: Message[] = [{ role: 'system', content: make.popular(systems) }]
    const requests = Array.from({ length: make.between(2, 10) }, () => {
      messages.push({ role: 'user', content: make.text(make.between(10, 200)) })
      const answer = make.text(make.between(50, 300))
      const request = requestOf(messages, answer)
      messages.push({ role: 'assistant', content: answer })
      return request
    })
    return { requests, pauseMs: make.between(1000, 8000) }
  })
  return { name: 'conversations', sessions, sessionsPerEngine: 32 }
}

/** Many applications with a long system prompt each, and one question at a time. */
export function sharedPrompts(seed: number, sessionCount: number): Load {
  const make = maker(seed)
  const systems = Array.from({ length: 120 }, () => make.text(make.between(1500, 4500)))
  const sessions = Array.from({ length: sessionCount }, () =>
    single(make, [
      { role: 'system', content: make.popular(systems) },
      { role: 'user', content: make.text(make.between(20, 200)) },
    ]),
  )
  return { name: 'shared prompts', sessions, sessionsPerEngine: 16 }
}

/** One long document that all requests share. */
export function hotPrefix(seed: number, sessionCount: number): Load {
  const make = maker(seed)
  const document = make.text(8000)
  const sessions = Array.from({ length: sessionCount }, () =>
    single(make, [
      { role: 'system', content: document },
      { role: 'user', content: make.text(make.between(20, 100)) },
    ]),
  )
  return { name: 'one hot prefix', sessions, sessionsPerEngine: 16 }
}

/** Retrieved documents between a common instruction and the question. */
export function retrieval(seed: number, sessionCount: number): Load {
  const make = maker(seed)
  const instruction = make.text(400)
  const documents = Array.from({ length: 400 }, () => make.text(make.between(300, 1000)))
  const sessions = Array.from({ length: sessionCount }, () =>
    single(make, [
      { role: 'system', content: instruction },
      { role: 'user', content: [...Array(4)].map(() => make.popular(documents)).join('') + make.text(40) },
    ]),
  )
  return { name: 'retrieval', sessions, sessionsPerEngine: 16 }
}

/** Prompts that have nothing in common. */
export function unrelated(seed: number, sessionCount: number): Load {
  const make = maker(seed)
  const sessions = Array.from({ length: sessionCount }, () =>
    single(make, [{ role: 'user', content: make.text(make.between(100, 3000)) }]),
  )
  return { name: 'unrelated', sessions, sessionsPerEngine: 16 }
}

/** Prompts too short to be worth a thought. */
export function short(seed: number, sessionCount: number): Load {
  const make = maker(seed)
  const sessions = Array.from({ length: sessionCount }, () =>
    single(make, [{ role: 'user', content: make.text(make.between(5, 60)) }]),
  )
  return { name: 'short', sessions, sessionsPerEngine: 32 }
}

export function single(make: Maker, messages: readonly Message[]): Session {
  return { requests: [requestOf(messages, make.text(make.between(50, 200)))], pauseMs: 0 }
}

export interface Maker {
  text(tokens: number): string
  between(least: number, most: number): number
  oneOf<Item>(items: readonly Item[]): Item
  /** The first items far more often than the last ones. */
  popular<Item>(items: readonly Item[]): Item
}

const LETTERS = 'abcdefghijklmnopqrstuvwxyz'

export function maker(seed: number): Maker {
  const random = seededRandom(seed)
  const between = (least: number, most: number): number => least + Math.floor(random() * (most - least + 1))
  return {
    between,
    text(tokens) {
      let text = ''
      for (let token = 0; token < tokens; token++) {
        const word = Math.floor(random() * 17_576)
        text += `${LETTERS[word % 26]}${LETTERS[Math.floor(word / 26) % 26]}${LETTERS[Math.floor(word / 676)]} `
      }
      return text
    },
    oneOf: (items) => items[Math.floor(random() * items.length)]!,
    popular: (items) => items[Math.floor(items.length * random() ** 2)]!,
  }
}

export function requestOf(messages: readonly Message[], answer: string): LoadRequest {
  const text = messages.map(({ role, content }) => role.padEnd(12) + content).join('')
  const chunksAfter = chunksOf(text + 'assistant   ' + answer)
  return {
    prompt: blocksOf(messages),
    tokens: Math.ceil(text.length / CHARACTERS_PER_TOKEN),
    output: Math.max(1, Math.round(answer.length / CHARACTERS_PER_TOKEN)),
    chunks: chunksAfter.slice(0, Math.floor(text.length / CHUNK_CHARACTERS)),
    chunksAfter,
  }
}

/** As the chat endpoint does it. */
function blocksOf(messages: readonly Message[]): PromptBlocks {
  const hasher = promptHasher()
  for (const { role, content } of messages) {
    hasher.beginMessage(role === 'assistant')
    hasher.text(role)
    for (let from = 0; from < content.length; from += 8192) hasher.text(content.slice(from, from + 8192))
    hasher.endMessage()
  }
  return hasher.result()
}

/** What an engine's cache knows a prompt by. It has nothing in common with the blocks above. */
function chunksOf(text: string): number[] {
  const chunks: number[] = []
  let high = 7
  let low = 11
  for (let end = CHUNK_CHARACTERS; end <= text.length; end += CHUNK_CHARACTERS) {
    for (let index = end - CHUNK_CHARACTERS; index < end; index++) {
      const code = text.charCodeAt(index)
      high = Math.imul(high ^ code, 0x01000193)
      low = Math.imul(low + code, 0x9e3779b1) ^ (low >>> 15)
    }
    chunks.push((high >>> 6) * 67_108_864 + (low >>> 6))
  }
  return chunks
}
