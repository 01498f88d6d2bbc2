import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { stringify } from 'yaml'
import { parseCatalog } from '../../src/catalog/file.ts'
import { deploymentsOf } from '../../src/catalog/model.ts'
import { untraced } from '../../src/server/incoming-request.ts'
import type { Engine } from '../../src/engines/engine.ts'
import { openEngines } from '../../src/open-engines.ts'
import { createTelemetry } from '../../src/operate/telemetry/telemetry.ts'
import { systemClock } from '../../src/shared/system-clock.ts'
import { modelEntry } from '../support/weir.ts'

function stage(t: TestContext, ...engines: readonly object[]) {
  const modelsDir = mkdtempSync(join(tmpdir(), 'weir-engines-'))
  t.after(() => rmSync(modelsDir, { recursive: true, force: true }))
  const lines: string[] = []
  const telemetry = createTelemetry('info', '1', { write: (line) => void lines.push(line), flush: async () => {} })
  const opened = openEngines({ dataDir: modelsDir, modelsDir, environment: {} }, systemClock, telemetry, {
    drained: { has: () => false },
  })
  t.after(() => opened.close())
  const models = engines.map((engine, index) =>
    modelEntry([], { id: `a/${index}`, aliases: [], serverless: { engine } }),
  )
  const deployments = parseCatalog(stringify({ models }), 'f', () => undefined).flatMap(deploymentsOf)
  opened.update(deployments)
  return { opened, lines, deployments }
}

const embedded = { kind: 'embedded', model: 'weir/starter-vision' }

describe('the engines of a catalog', () => {
  it('have their addresses, and a model that runs here is ready once its files exist', (t) => {
    const remote = { kind: 'openai', urls: ['http://127.0.0.1:9/v1'], model: 'm' }
    const { opened, deployments } = stage(t, remote, embedded, { kind: 'embedded', model: 'qwen/qwen3-8b' })
    const addresses = [...opened.addresses()].map(([lane, { url, isUp }]) => [lane, url, isUp])
    assert.deepEqual(addresses[0], ['a/0', 'http://127.0.0.1:9/v1', true])
    assert.deepEqual(addresses[1], ['a/1', 'embedded', true])
    assert.deepEqual(
      deployments.map((deployment) => opened.of(deployment)?.usable()),
      [true, true, false],
    )
    assert.equal(opened.of(deployments[0]!)?.missingFiles, undefined)
    assert.equal(opened.of(deployments[2]!)?.missingFiles?.()?.slug, 'qwen/qwen3-8b')
  })

  it('count and log a call that fails', async (t) => {
    const { opened, deployments, lines } = stage(t, { kind: 'openai', urls: ['http://127.0.0.1:9/v1'], model: 'm' })
    const receiver = { start() {}, data() {} }
    const request = { path: '/chat/completions', body: '{}', headers: {} }
    const call = opened.of(deployments[0]!)?.run({ ...request, receiver, trace: untraced('', {}) } as never)
    assert.equal((await call?.ended)?.kind, 'failed')
    assert.notDeepEqual(opened.failures.of('http://127.0.0.1:9/v1'), opened.failures.of('http://127.0.0.1:9/other'))
    assert.ok(lines.some((line) => line.includes('engine call failed')))
  })

  it('are closed before the hosts of local models, whose sockets are then removed', async (t) => {
    const { opened, deployments } = stage(t, embedded)
    let folder = ''
    opened.local.engine(embedded.model, (socket) => {
      folder = dirname(socket)
      return {} as Engine
    })
    mkdirSync(folder)
    writeFileSync(join(folder, 'socket'), '')
    const release = opened.of(deployments[0]!)?.retain()
    let isClosed = false
    const closing = opened.close().then(() => void (isClosed = true))
    for (let turns = 0; turns < 20; turns++) await turn()
    assert.deepEqual([isClosed, existsSync(folder)], [false, true])
    release?.()
    await closing
    assert.ok(!existsSync(folder))
  })
})
