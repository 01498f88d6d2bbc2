import assert from 'node:assert/strict'
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { Pool } from 'undici'
import { stringify } from 'yaml'
import { runLength } from '../support/long-run.ts'
import { collect, startNote } from '../support/cli.ts'
import { eventually } from '../support/waiting.ts'
import { modelEntry } from '../support/weir.ts'

/**
 * What a request costs, in bytes allocated by the main thread, as a multiple of what the least possible proxy on the same
 * runtime allocates (bench/http/bare-proxy.ts). Unlike times, that does not depend on the machine or on what else runs
 * there. `npm run bench -- http` measures the times.
 */
const TIMES_MOST = 5
/** The text of a body, and the strings in it. */
const COPIES_MOST = 2.5
/** Bytes of a request that are copied to where only a full collection frees them. */
const PROMOTED_MOST = 2000
const WARM_REQUESTS = runLength(100, 400)

const SAMPLER = new URL('../support/sample-allocations.mjs', import.meta.url).href
const file = (path: string): string => new URL(`../../${path}`, import.meta.url).pathname

const answer = JSON.stringify({
  id: 'x',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'word '.repeat(100) }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 200, completion_tokens: 100, total_tokens: 300 },
})

interface Measured {
  readonly child: ChildProcess
  readonly origin: string
  readonly path: string
  readonly headers: Record<string, string>
}

describe('the cost of a request, next to a bare proxy', () => {
  const folder = mkdtempSync(join(tmpdir(), 'weir-cost-'))
  const engine = createServer((request, response) => {
    request.resume().on('end', () => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': answer.length }).end(answer)
    })
  })
  let weir: Measured
  let bare: Measured

  before(async () => {
    await new Promise<void>((resolve) => engine.listen(0, '127.0.0.1', resolve))
    const { port } = engine.address() as AddressInfo
    weir = await startWeir(`http://127.0.0.1:${port}/v1`)
    bare = await startBare(port)
  })

  after(() => {
    weir.child.kill('SIGKILL')
    bare.child.kill('SIGKILL')
    engine.close()
    engine.closeAllConnections()
    rmSync(folder, { recursive: true, force: true })
  })

  async function startWeir(url: string): Promise<Measured> {
    const config = join(folder, 'weir.yaml')
    const server = { port: 0, admin_port: 0, drain_ms: 0 }
    const rateLimit = { requests_per_minute: 1_000_000 }
    const limits = { token_budget: 1_000_000, max_concurrent_requests: 64, max_queue_depth: 64, max_wait_ms: 60_000 }
    const serverless = { engine: { kind: 'openai', urls: [url], model: 'engine-name' }, limits }
    const models = [modelEntry([url], { context_length: 131_072, serverless })]
    writeFileSync(config, stringify({ server, data_dir: join(folder, 'data'), rate_limit: rateLimit, models }))
    const child = measured('src/main.ts', ['serve', '--config', config])
    const stdout = collect(child.stdout)
    await eventually('the service runs', () => stdout().endsWith('\n') || child.exitCode !== null, 30_000)
    const { api, firstKey } = startNote(stdout())
    const { origin, pathname } = new URL(api)
    return {
      child,
      origin,
      path: `${pathname}/chat/completions`,
      headers: { 'content-type': 'application/json', authorization: `Bearer ${firstKey}` },
    }
  }

  async function startBare(enginePort: number): Promise<Measured> {
    const child = measured('bench/http/bare-proxy.ts', [String(enginePort)])
    const [port] = (await once(child, 'message')) as [number]
    return { child, origin: `http://127.0.0.1:${port}`, path: '/', headers: { 'content-type': 'application/json' } }
  }

  /** Bytes for each request, once the code is warm. */
  async function bytesOf(
    { child, origin, path, headers }: Measured,
    body: string,
    requests: number,
    atATime = 8,
  ): Promise<{ readonly allocated: number; readonly promoted: number }> {
    const pool = new Pool(origin, { connections: atATime })
    async function send(count: number): Promise<void> {
      let left = count
      const caller = async (): Promise<void> => {
        while (left-- > 0) {
          const response = await pool.request({ method: 'POST', path, headers, body })
          const text = await response.body.text()
          assert.equal(response.statusCode, 200, text)
        }
      }
      await Promise.all(Array.from({ length: atATime }, caller))
    }
    await send(WARM_REQUESTS)
    child.send('start')
    await once(child, 'message')
    await send(requests)
    child.send('stop')
    const [bytes] = (await once(child, 'message')) as [{ allocated: number; promoted: number }]
    await pool.close()
    return { allocated: bytes.allocated / requests, promoted: bytes.promoted / requests }
  }

  const chatOf = (bytes: number): string => {
    const messages = [{ role: 'user', content: 'word '.repeat(bytes / 5) }]
    return JSON.stringify({ model: 'meta/test-8b', messages, max_tokens: 256 })
  }

  it('is at most a few times as much for a chat of 1 KB', async () => {
    const { allocated: least } = await bytesOf(bare, chatOf(1000), 400)
    const { allocated: own } = await bytesOf(weir, chatOf(1000), 400)
    const found = `${Math.round(own)} bytes a request, ${(own / least).toFixed(2)} times the ${Math.round(least)} of a bare proxy`
    assert.ok(least > 1000 && own > least, `nothing was measured: ${found}`)
    assert.ok(own / least <= TIMES_MOST, `${found}; at most ${TIMES_MOST} times are allowed`)
  })

  it('grows with the body by its text and by the strings in it, and by no other copy', async () => {
    const [small, large] = [chatOf(1000), chatOf(100_000)]
    const grown = (await bytesOf(weir, large, 100)).allocated - (await bytesOf(weir, small, 400)).allocated
    const copies = grown / (large.length - small.length)
    assert.ok(copies > 1, `nothing was measured: ${copies.toFixed(2)} copies`)
    assert.ok(copies <= COPIES_MOST, `${copies.toFixed(2)} copies of a body; at most ${COPIES_MOST} are allowed`)
  })

  it('is freed when it is over, and is not reachable from long-lived memory', async () => {
    const { allocated, promoted } = await bytesOf(weir, chatOf(1000), runLength(1000, 6000), 64)
    assert.ok(allocated > 1000, 'nothing was measured')
    assert.ok(promoted <= PROMOTED_MOST, `${promoted.toFixed(0)} bytes a request; at most ${PROMOTED_MOST} are allowed`)
  })
})

function measured(program: string, args: readonly string[]): ChildProcess {
  return fork(file(program), args, {
    execArgv: ['--max-semi-space-size=16', '--no-allocation-site-pretenuring', '--import', SAMPLER],
    stdio: ['ignore', 'pipe', 'ignore', 'ipc'],
  })
}
