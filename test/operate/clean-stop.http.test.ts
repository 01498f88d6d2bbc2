import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import { isServiceRunning } from '../../src/store/sqlite/service-lock.ts'
import { within } from '../support/waiting.ts'

/**
 * Starts a service in a process of its own, uses and stops it. The command `weir serve` ends its process itself, so that
 * nothing could keep it; this one ends only if nothing is left open.
 */
function program(config: string, use: string): string {
  const of = (path: string): string => JSON.stringify(new URL(`../../src/${path}`, import.meta.url).href)
  return `
    import { createHook } from 'node:async_hooks'
    // What is repeated without keeping the process alive would be left unnoticed.
    const open = new Map()
    createHook({
      init(id, type, trigger, resource) {
        const isRepeated = type === 'Timeout' && resource._repeat !== null
        if (!isRepeated && !/^(STATWATCHER|FSEVENTWRAP|WORKER)$/.test(type)) return
        const place = new Error().stack.split('\\n').find((it) => it.includes('/src/') && !it.includes('node_modules'))
        if (place) open.set(id, type + place)
      },
      destroy: (id) => open.delete(id),
    }).enable()
    const { startService } = await import(${of('compose.ts')})
    const { loadConfig } = await import(${of('config.ts')})
    const config = loadConfig({ config: ${JSON.stringify(config)}, port: '0' }, { WEIR_ADMIN_PORT: '0' })
    const service = await startService(config, { log: { write() {}, flush: async () => {} } })
    ${use}
    await Promise.all([service.stop(), service.stop()])
    const refused = await fetch(service.url).then(() => false, () => true)
    const operatorRefused = await fetch(service.adminUrl).then(() => false, () => true)
    process.stdout.write(JSON.stringify({ refused, operatorRefused, open: [...open.values()] }))`
}

describe('a service that has stopped', () => {
  it('has left nothing open that would keep its process alive, and no sign of a running service in its directory', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-stop-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const config = join(folder, 'weir.yaml')
    const engine = { kind: 'vllm', urls: ['http://127.0.0.1:1'] }
    const model = { id: 'a/b', categories: ['llm'], context_length: 100, serverless: { engine } }
    const files = { kind: 'local', public_url: 'http://weir.test' }
    const smtp = { host: '127.0.0.1', port: 1, from: 'weir@example.com' }
    const parts = { files, smtp, images: { allowed_hosts: ['h'] } }
    writeFileSync(config, JSON.stringify({ models: [model], ...parts }))
    const use = `
      const ask = (path, headers = {}) => fetch(service.url + path, { headers }).then((it) => it.text())
      await ask('/livez')
      await ask('/api/v1/models', { authorization: 'Bearer ' + service.firstKey })
      await ask('/api/v1/models', { authorization: 'Bearer wrong' })
      const links = [await service.consoleLink(), await service.operatorConsoleLink()]
      if (!links.every((it) => /^http:.*\\/console#link=./.test(it))) throw new Error('there is no link: ' + links)`
    writeFileSync(join(folder, 'program.mjs'), program(config, use))
    const child = spawn(process.execPath, [join(folder, 'program.mjs')], { stdio: ['ignore', 'pipe', 'inherit'] })
    t.after(() => child.kill('SIGKILL'))
    const ended = Promise.all([text(child.stdout), once(child, 'exit')])
    const [output, [code]] = await within(60_000, 'the process ends', ended)
    assert.deepEqual([code, JSON.parse(output)], [0, { refused: true, operatorRefused: true, open: [] }])
    const data = join(folder, 'data')
    assert.equal(isServiceRunning(data), false)
    const left = readdirSync(data).filter((name) => /sock|service\.json|-wal|-shm/.test(name))
    assert.deepEqual(left, [])
  })
})
