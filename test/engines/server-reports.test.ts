import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it, type TestContext } from 'node:test'
import type { EngineDescription, EngineKind } from '../../src/catalog/model.ts'
import { cacheSizeQuestion } from '../../src/engines/dialects/cache-size.ts'
import { loadQuestion } from '../../src/engines/dialects/reported-load.ts'
import type { EngineAddress } from '../../src/engines/address.ts'
import { openLoadReader, watchCacheSize } from '../../src/engines/server-reports.ts'
import { noActivity } from '../../src/engines/server-activity.ts'
import type { Client } from '../../src/engines/http-client/index.ts'
import { gate } from '../support/waiting.ts'
import { turn } from '../support/hand-clock.ts'

const fixture = (name: string): string =>
  readFileSync(new URL(`../fixtures/cache-size/${name}`, import.meta.url), 'utf8')

const engineOf = (kind: EngineKind, more: Partial<EngineDescription> = {}): EngineDescription =>
  ({ kind, balance: 'prefix', cacheTokens: undefined, ...more }) as EngineDescription

const tokensIn = (kind: EngineKind, answer: string): number | undefined =>
  cacheSizeQuestion(engineOf(kind))?.read(answer)

describe('the cache size that a server reports', () => {
  it('is read from vLLM’s metrics: blocks × tokens of a block, of all its engines', () => {
    assert.equal(tokensIn('vllm', fixture('vllm.txt')), 27_842 * 16)
    assert.equal(tokensIn('vllm', fixture('vllm-data-parallel.txt')), 2010 * 16)
    assert.equal(tokensIn('vllm', fixture('vllm-unknown.txt')), undefined)
    assert.equal(tokensIn('vllm', '<html>not metrics</html>'), undefined)
  })

  it('is read from SGLang’s server info', () => {
    assert.equal(tokensIn('sglang', fixture('sglang.json')), 414_382)
    assert.equal(tokensIn('sglang', '{"max_total_num_tokens":null}'), undefined)
  })

  it('is read from llama.cpp’s properties: the context of a slot × the slots', () => {
    assert.equal(tokensIn('llamacpp', fixture('llamacpp.json')), 32_768)
    assert.equal(tokensIn('llamacpp', '{"default_generation_settings":{"n_ctx":4096}}'), 4096)
    for (const answer of ['', 'null', '[]', '{"default_generation_settings":7}', '{"total_slots":4}', '{']) {
      assert.equal(tokensIn('llamacpp', answer), undefined, answer)
    }
  })

  it('is not queried if it is configured, if it does not matter, or if the server cannot know it', () => {
    assert.equal(cacheSizeQuestion(engineOf('vllm', { cacheTokens: 1000 })), undefined)
    assert.equal(cacheSizeQuestion(engineOf('vllm', { balance: 'least_busy' })), undefined)
    assert.equal(cacheSizeQuestion(engineOf('openai')), undefined)
  })
})

/** An address that gives the answer that is set. */
function stage(t: TestContext, isHeld = false) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const server: { answer: { status: number; body: string; isWhole?: boolean } | 'refused' } = { answer: 'refused' }
  const asked: { path: string; lines: string }[] = []
  const given: Parameters<EngineAddress['query']>[2][] = []
  const held = gate()
  if (!isHeld) held.open()
  const address: EngineAddress = {
    url: 'http://engine/v1',
    prefix: '/v1',
    client: undefined as unknown as Client,
    async query(path, lines, limits) {
      asked.push({ path, lines })
      given.push(limits)
      await held.opened
      if (server.answer === 'refused') throw new Error('nothing listens')
      return { isWhole: true, ...server.answer }
    },
    inFlight: 0,
    healthy: true,
    isDrained: () => false,
    activity: noActivity(),
    close: () => Promise.resolve(),
  }
  const pass = async (ms: number): Promise<void> => {
    t.mock.timers.tick(ms)
    for (let round = 0; round < 5; round++) await turn()
  }
  return { server, asked, given, held, address, pass }
}

const lines = 'authorization: Bearer engine-key\r\n'

function cacheStage(t: TestContext, isHeld = false) {
  const { address, ...rest } = stage(t, isHeld)
  const reported: number[] = []
  const question = cacheSizeQuestion(engineOf('llamacpp'))!
  const watch = watchCacheSize(address, question, lines, (tokens) => reported.push(tokens))
  t.after(watch.stop)
  return { ...rest, reported, watch }
}

describe('the poll for the size of a cache', () => {
  it('uses the key of the engine, and stops when there is an answer', async (t) => {
    const { server, asked, reported, pass } = cacheStage(t)
    await pass(0)
    await pass(29_999)
    assert.deepEqual(asked, [{ path: '//props', lines: 'authorization: Bearer engine-key\r\n' }])
    server.answer = { status: 503, body: '{"error":{"message":"Loading model"}}' }
    await pass(1)
    assert.deepEqual([asked.length, reported], [2, []])
    server.answer = { status: 200, body: fixture('llamacpp.json') }
    await pass(30_000)
    assert.deepEqual([asked.length, reported], [3, [32_768]])
    await pass(600_000)
    assert.equal(asked.length, 3)
  })

  it('starts again when the server was down, once, however often it was', async (t) => {
    const { server, asked, reported, watch, pass } = cacheStage(t)
    await pass(0)
    server.answer = { status: 200, body: fixture('llamacpp.json') }
    await pass(30_000)
    for (let times = 0; times < 5; times++) watch.pollAgain()
    server.answer = { status: 200, body: '{"default_generation_settings":{"n_ctx":4096},"total_slots":1}' }
    await pass(30_000)
    assert.deepEqual([asked.length, reported], [3, [32_768, 4096]])
  })

  it('stops when the engine is closed', async (t) => {
    const { asked, watch, pass } = cacheStage(t)
    await pass(0)
    watch.stop()
    await pass(600_000)
    assert.equal(asked.length, 1)
  })

  it('is aborted when the engine is closed, and its answer is ignored', async (t) => {
    const { server, asked, given, held, reported, watch, pass } = cacheStage(t, true)
    server.answer = { status: 200, body: fixture('llamacpp.json') }
    await pass(0)
    assert.equal(given[0]?.signal?.aborted, false)
    watch.stop()
    assert.equal(given[0]?.signal?.aborted, true)
    held.open()
    await pass(600_000)
    assert.deepEqual([asked.length, reported], [1, []])
  })

  it('waits 5 s for an answer of at most 4 MiB', async (t) => {
    const { given, pass } = cacheStage(t)
    await pass(0)
    const { timeoutMs, maxBytes } = given[0]!
    assert.deepEqual([timeoutMs, maxBytes], [5000, 4_194_304])
  })

  it('ignores an answer that is too long', async (t) => {
    const { server, asked, reported, pass } = cacheStage(t)
    await pass(0)
    server.answer = { status: 200, body: fixture('llamacpp.json'), isWhole: false }
    await pass(30_000)
    assert.deepEqual([asked.length, reported], [2, []])
  })
})

const loadIn = (kind: EngineKind, metrics: string) => loadQuestion(engineOf(kind))?.read(metrics)

describe('the load that a server reports', () => {
  it('is read from vLLM’s metrics: the requests of all its engines, and its fullest cache', () => {
    const metrics = [
      '# TYPE vllm:num_requests_running gauge',
      'vllm:num_requests_running{engine="0",model_name="a b"} 2.0',
      'vllm:num_requests_running{engine="1",model_name="a b"} 3.0',
      'vllm:num_requests_running_total{engine="0"} 99.0',
      'vllm:num_requests_waiting{engine="0",model_name="a b"} 1.0',
      'vllm:num_requests_waiting{engine="1",model_name="a b"} 4.0',
      'vllm:kv_cache_usage_perc{engine="0",model_name="a b"} 0.25',
      'vllm:kv_cache_usage_perc{engine="1",model_name="a b"} 0.5',
    ]
    assert.deepEqual(loadIn('vllm', metrics.join('\n')), { running: 5, waiting: 5, cacheUse: 0.5 })
    const older = metrics.join('\n').replaceAll('kv_cache_usage', 'gpu_cache_usage')
    assert.equal(loadIn('vllm', older)?.cacheUse, 0.5)
  })

  it('is read from SGLang’s and llama.cpp’s metrics', () => {
    const sglang =
      'sglang:num_running_reqs{tp_rank="0"} 8\nsglang:num_queue_reqs{tp_rank="0"} 4\nsglang:token_usage{} 0.52\n'
    assert.deepEqual(loadIn('sglang', sglang), { running: 8, waiting: 4, cacheUse: 0.52 })
    const llamacpp = 'llamacpp:requests_processing 1\nllamacpp:requests_deferred 46\n'
    assert.deepEqual(loadIn('llamacpp', llamacpp), { running: 1, waiting: 46, cacheUse: undefined })
  })

  it('is unknown if the answer has none, and not asked of servers that do not report it', () => {
    for (const answer of ['', '<html>not metrics</html>', 'vllm:num_requests_running NaN', '{"vllm":1}']) {
      assert.equal(loadIn('vllm', answer), undefined, answer)
    }
    assert.equal(loadQuestion(engineOf('openai')), undefined)
  })
})

describe('reading the load of a server', () => {
  function loadStage(t: TestContext, isHeld = false) {
    const staged = stage(t, isHeld)
    let nowMs = 0
    const readerOf = (address: EngineAddress, kind: EngineKind = 'llamacpp', sent = lines) =>
      openLoadReader(address, { kind, question: loadQuestion(engineOf(kind))!, lines: sent }, () => nowMs)
    return { ...staged, reader: readerOf(staged.address), readerOf, wait: (ms: number) => void (nowMs += ms) }
  }
  const busy = { status: 200, body: 'llamacpp:requests_processing 3\nllamacpp:requests_deferred 2\n' }

  it('asks with the key of the engine, and again after 5 s', async (t) => {
    const { server, asked, given, reader, wait } = loadStage(t)
    assert.equal(reader.load(), undefined)
    server.answer = busy
    await reader.read()
    assert.deepEqual(reader.load(), { running: 3, waiting: 2, cacheUse: undefined })
    assert.deepEqual([asked, given[0]?.timeoutMs], [[{ path: '//metrics', lines }], 1000])
    server.answer = { ...busy, body: 'llamacpp:requests_processing 4\n' }
    wait(4999)
    await reader.read()
    assert.deepEqual([asked.length, reader.load()?.running], [1, 3])
    wait(1)
    await reader.read()
    assert.deepEqual([asked.length, reader.load()?.running], [2, 4])
  })

  it('asks once for several readers', async (t) => {
    const { server, asked, held, reader, wait } = loadStage(t, true)
    server.answer = busy
    const first = reader.read()
    wait(60_000)
    const second = reader.read()
    held.open()
    await Promise.all([first, second])
    assert.deepEqual([asked.length, reader.load()?.running], [1, 3])
  })

  it('asks once for several deployments of one server, whichever of them reads', async (t) => {
    const { server, address, asked, reader, readerOf, wait } = loadStage(t)
    const other = { ...address, url: 'http://engine/other' }
    const others = readerOf(other)
    server.answer = busy
    await Promise.all([reader.read(), others.read()])
    assert.deepEqual([asked.length, reader.load()?.running, others.load()?.running], [1, 3, 3])
    server.answer = { ...busy, body: 'llamacpp:requests_processing 4\n' }
    wait(5000)
    await others.read()
    assert.deepEqual([asked.length, reader.load()?.running], [2, 4])
    // Only the deployment whose calls failed loses sight of the server.
    address.healthy = false
    wait(5000)
    await Promise.all([reader.read(), others.read()])
    assert.deepEqual([asked.length, reader.load(), others.load()?.running], [3, undefined, 4])
  })

  it('asks again for a deployment with another key or another kind of engine', async (t) => {
    const { server, address, asked, reader, readerOf } = loadStage(t)
    server.answer = busy
    const otherKey = readerOf(address, 'llamacpp', 'authorization: Bearer other\r\n')
    const otherKind = readerOf(address, 'vllm')
    for (const it of [reader, otherKey, otherKind]) await it.read()
    assert.deepEqual([asked.length, otherKey.load()?.running, otherKind.load()], [3, 3, undefined])
  })

  it('forgets what a server reported that does not answer, refuses, or is down', async (t) => {
    const { server, address, asked, reader, wait } = loadStage(t)
    for (const answer of ['refused', { status: 501, body: busy.body }, { ...busy, isWhole: false }] as const) {
      server.answer = busy
      wait(5000)
      await reader.read()
      assert.equal(reader.load()?.running, 3)
      server.answer = answer
      wait(5000)
      await reader.read()
      assert.equal(reader.load(), undefined)
    }
    server.answer = busy
    address.healthy = false
    wait(5000)
    await reader.read()
    assert.deepEqual([reader.load(), asked.length], [undefined, 6])
  })
})
