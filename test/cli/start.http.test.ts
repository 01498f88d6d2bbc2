import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { stringify } from 'yaml'
import { startService, type Service } from '../../src/compose.ts'
import { loadConfig } from '../../src/config.ts'
import { freePort } from '../support/free-port.ts'
import { modelEntry } from '../support/weir.ts'

/** A start that fails must leave nothing open: no listener, no lock on the data directory, no note for commands. */

function start(folder: string, server: object, models: readonly object[] = []): Promise<Service> {
  const file = join(folder, 'weir.yaml')
  writeFileSync(file, stringify({ server, log: { level: 'silent' }, models }))
  return startService(loadConfig({ config: file, data: join(folder, 'data') }, {}))
}

function emptyFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'weir-start-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

async function listening(t: TestContext): Promise<{ server: Server; port: number }> {
  const server = createServer((socket) => socket.destroy())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  return { server, port: (server.address() as AddressInfo).port }
}

function accepts(port: number, host = '127.0.0.1'): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host)
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}

async function startsAgain(folder: string): Promise<void> {
  const service = await start(folder, { port: 0, admin_port: 0 })
  await service.stop()
}

describe('a start that fails', () => {
  it('leaves no public listener open when the admin port is taken', async (t) => {
    const folder = emptyFolder(t)
    const { port: taken } = await listening(t)
    const port = await freePort()
    await assert.rejects(start(folder, { port, admin_port: taken }), { code: 'EADDRINUSE' })
    assert.equal(await accepts(port), false)
    assert.ok(!existsSync(join(folder, 'data', 'service.json')))
    await startsAgain(folder)
  })

  it('leaves no admin listener open when the public port is taken', async (t) => {
    const folder = emptyFolder(t)
    const { port: taken } = await listening(t)
    const adminPort = await freePort()
    await assert.rejects(start(folder, { port: taken, admin_port: adminPort }), { code: 'EADDRINUSE' })
    assert.equal(await accepts(adminPort), false)
    assert.ok(!existsSync(join(folder, 'data', 'service.json')))
    await startsAgain(folder)
  })

  it('unlocks the data directory when the catalog names a model that cannot run', async (t) => {
    const folder = emptyFolder(t)
    const unknown = modelEntry([], {
      serverless: {
        engine: { kind: 'embedded', model: 'nobody/knows' },
        limits: { token_budget: 1000, max_concurrent_requests: 1, max_queue_depth: 1, max_wait_ms: 1000 },
      },
    })
    await assert.rejects(start(folder, { port: 0, admin_port: 0 }, [unknown]), /nobody\/knows/)
    await startsAgain(folder)
  })
})

describe('a service', () => {
  it('can listen on an IPv6 address, which is in brackets in its URL', async (t) => {
    const folder = emptyFolder(t)
    const service = await start(folder, { host: '::1', port: 0, admin_port: 0 }).catch(
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'EADDRNOTAVAIL' || error.code === 'EAFNOSUPPORT') return undefined
        throw error
      },
    )
    if (!service) return t.skip('this machine has no IPv6')
    t.after(() => service.stop())
    assert.match(service.url, /^http:\/\/\[::1\]:\d+$/)
    assert.equal((await fetch(`${service.url}/healthz`)).status, 200)
  })
})

describe('the operator listener', () => {
  it('stays on loopback when the public one listens on every address', async (t) => {
    const folder = emptyFolder(t)
    const file = join(folder, 'weir.yaml')
    for (const [host, environment] of [
      [undefined, { WEIR_HOST: '0.0.0.0' }],
      ['0.0.0.0', {}],
    ] as const) {
      const server = { port: 0, admin_port: 0, ...(host === undefined ? {} : { host }) }
      writeFileSync(file, stringify({ server, log: { level: 'silent' }, models: [] }))
      const service = await startService(loadConfig({ config: file, data: join(folder, 'data') }, environment))
      t.after(() => service.stop())
      assert.equal(new URL(service.url).hostname, '0.0.0.0')
      assert.equal(new URL(service.adminUrl).hostname, '127.0.0.1')
      const ports = [service.url, service.adminUrl].map((url) => Number(new URL(url).port))
      // All of 127.0.0.0/8 is this machine, on Linux at least: an address other than the one it listens on.
      if (process.platform === 'linux') {
        assert.deepEqual(await Promise.all(ports.map((port) => accepts(port, '127.0.0.2'))), [true, false])
      }
      assert.deepEqual(await Promise.all(ports.map((port) => accepts(port))), [true, true])
      await service.stop()
    }
  })

  it('uses the address of server.admin_host', async (t) => {
    if (process.platform !== 'linux') return t.skip('only Linux has all of 127.0.0.0/8')
    const service = await start(emptyFolder(t), { port: 0, admin_port: 0, admin_host: '127.0.0.2' })
    t.after(() => service.stop())
    const { hostname, port } = new URL(service.adminUrl)
    assert.equal(hostname, '127.0.0.2')
    assert.deepEqual([await accepts(Number(port), '127.0.0.2'), await accepts(Number(port))], [true, false])
  })
})

describe('a stop', () => {
  it('can be requested twice and happens once', async (t) => {
    const folder = emptyFolder(t)
    const service = await start(folder, { port: 0, admin_port: 0 })
    await Promise.all([service.stop(), service.stop()])
    await service.stop()
    assert.ok(!existsSync(join(folder, 'data', 'service.json')))
    await startsAgain(folder)
  })
})
