import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, it, type TestContext } from 'node:test'
import { connect, type TLSSocket } from 'node:tls'
import { stringify } from 'yaml'
import { readCertificate } from '../../src/server/certificate.ts'
import { startService, type Service } from '../../src/compose.ts'
import { loadConfig } from '../../src/config.ts'
import { sharedPort } from '../../src/cluster/workers/shared-port.ts'
import { rawClient } from '../support/raw-client.ts'
import { eventually, within } from '../support/waiting.ts'

const fixture = (name: string): string => new URL(`../fixtures/tls/${name}.pem`, import.meta.url).pathname
const pair = (name: string): { cert: string; key: string } => ({
  cert: fixture(`${name}.cert`),
  key: fixture(`${name}.key`),
})
const endsAt = (name: string): number => readCertificate(pair(name)).validUntil.getTime() / 1000
const ca = ['first', 'second'].map((name) => readFileSync(fixture(`${name}.cert`)))

interface Stage {
  readonly cert: string
  readonly key: string
  /** Replaces one of the files. */
  put(file: 'cert' | 'key', from: string): void
  /** Starts a service with these files, or with others. */
  start(files?: { cert: string; key: string }): Promise<Service>
  /** When the certificate ends, as the metrics of the service have it. */
  endOf(service: Service): Promise<number>
  /** Everything that the service has logged. */
  readonly log: string
}

/** A certificate and its key, where a test can replace them, and a service that uses them. */
function stage(t: TestContext): Stage {
  const folder = mkdtempSync(join(tmpdir(), 'weir-tls-'))
  const ends: (() => Promise<void>)[] = []
  t.after(async () => {
    for (const end of ends) await end()
    rmSync(folder, { recursive: true, force: true })
  })
  const files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
  const put: Stage['put'] = (file, from) => copyFileSync(pair(from)[file], files[file])
  put('cert', 'first')
  put('key', 'first')
  let log = ''
  return {
    ...files,
    put,
    get log() {
      return log
    },
    async start(tls = files) {
      const config = join(folder, 'weir.yaml')
      writeFileSync(config, stringify({ server: { port: 0, admin_port: 0, tls }, models: [] }))
      const destination = { write: (line: string) => void (log += line), flush: async () => {} }
      const service = await startService(loadConfig({ config, data: join(folder, 'data') }, {}), { log: destination })
      ends.push(service.stop)
      return service
    },
    async endOf({ adminUrl }) {
      const token = readFileSync(join(folder, 'data', 'operator-token'), 'utf8').trim()
      const metrics = await fetch(`${adminUrl}/metrics`, { headers: { authorization: `Bearer ${token}` } })
      return Number(/^weir_certificate_end_timestamp_seconds (\d+)$/m.exec(await metrics.text())?.[1])
    },
  }
}

interface Called {
  readonly status: number
  /** Of the certificate. */
  readonly name: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** A connection of its own, so that each call sees the certificate that is in force. */
async function call(url: string, headers: Record<string, string> = {}, body?: object): Promise<Called> {
  const agent = new Agent({ ca, maxCachedSessions: 0 })
  const sent = request(url, { agent, headers, method: body ? 'POST' : 'GET' }).end(body && JSON.stringify(body))
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const { subject } = (response.socket as TLSSocket).getPeerCertificate()
  const received = await text(response)
  agent.destroy()
  return { status: response.statusCode ?? 0, name: String(subject.CN), headers: response.headers, body: received }
}

describe('server.tls', () => {
  it('serves HTTPS on the public listener, HTTP for the operator, and a metric of the end of the certificate', async (t) => {
    const tls = stage(t)
    const service = await tls.start()
    assert.match(service.url, /^https:\/\/127\.0\.0\.1:/)
    const models = await call(`${service.url}/api/v1/models`, { authorization: `Bearer ${service.firstKey}` })
    assert.deepEqual([models.status, models.name], [200, 'first.example.com'])
    assert.match(service.adminUrl, /^http:/)
    assert.equal((await fetch(`${service.adminUrl}/healthz`)).status, 200)
    assert.equal(await tls.endOf(service), endsAt('first'))
  })

  it('accepts TLS 1.2 and later', async (t) => {
    const service = await stage(t).start()
    const port = Number(new URL(service.url).port)
    const agreed = (version: 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3'): Promise<string | null> =>
      new Promise((resolve) => {
        const ciphers = 'DEFAULT@SECLEVEL=0'
        const socket = connect(
          { port, host: '127.0.0.1', ca, ciphers, minVersion: version, maxVersion: version },
          () => {
            resolve(socket.getProtocol())
            socket.destroy()
          },
        )
        socket.on('error', () => resolve(null))
      })
    assert.deepEqual(
      [await agreed('TLSv1.1'), await agreed('TLSv1.2'), await agreed('TLSv1.3')],
      [null, 'TLSv1.2', 'TLSv1.3'],
    )
  })

  it('applies renewed files without a restart, and keeps open connections', async (t) => {
    const tls = stage(t)
    const service = await tls.start()
    const url = `${service.url}/healthz`
    const kept = connect({ port: Number(new URL(url).port), host: '127.0.0.1', ca })
    let received = ''
    kept.on('data', (chunk: Buffer) => (received += chunk.toString('latin1')))
    await eventually('it is encrypted', () => kept.getProtocol() !== null && !kept.connecting)
    tls.put('cert', 'second')
    tls.put('key', 'second')
    await eventually('the new one is served', async () => (await call(url)).name === 'second.example.com', 60_000)
    assert.equal(await tls.endOf(service), endsAt('second'))
    kept.write('GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    await eventually('the connection goes on', () => received.includes('HTTP/1.1 200'))
    kept.destroy()
  })

  it('keeps the old certificate while the new files do not match or are broken', async (t) => {
    const tls = stage(t)
    const { url: origin } = await tls.start()
    const url = `${origin}/healthz`
    tls.put('cert', 'second')
    await eventually('the mismatch is logged', () => /does not belong to the certificate/.test(tls.log), 60_000)
    assert.equal((await call(url)).name, 'first.example.com')
    writeFileSync(tls.key, 'nonsense')
    await eventually('the nonsense is logged', () => /is not a private key/.test(tls.log), 60_000)
    assert.equal((await call(url)).name, 'first.example.com')
    tls.put('key', 'second')
    await eventually('the new one is served', async () => (await call(url)).name === 'second.example.com', 60_000)
  })

  it('reports which file is wrong, and how', (t) => {
    const { cert, key, put } = stage(t)
    assert.match(readCertificate({ cert, key }).names, /first\.example\.com/)
    const missing = join(cert, '..', 'missing.pem')
    assert.throws(() => readCertificate({ cert: missing, key }), /^Error: server\.tls\.cert: ENOENT.*missing\.pem/)
    assert.throws(
      () => readCertificate({ cert: key, key }),
      /server\.tls\.cert: .*key\.pem is not a certificate in PEM/,
    )
    assert.throws(() => readCertificate({ cert, key: cert }), /server\.tls\.key: .*cert\.pem is not a private key/)
    assert.throws(
      () => readCertificate({ cert, key: fixture('locked.key') }),
      /server\.tls\.key: .*locked\.key\.pem is not a private key without a password/,
    )
    put('key', 'second')
    assert.throws(
      () => readCertificate({ cert, key }),
      /server\.tls\.key: .*key\.pem does not belong to the certificate in .*cert\.pem/,
    )
  })

  it('does not start with wrong files', async (t) => {
    const { cert, start } = stage(t)
    await assert.rejects(start({ cert, key: cert }), /server\.tls\.key: .*cert\.pem is not a private key/)
    await assert.rejects(
      start({ cert, key: '/nowhere/key.pem' }),
      /weir\.yaml:\d+: server\.tls\.key: \/nowhere\/key\.pem does not exist/,
    )
  })

  it('refuses bytes that are not HTTP, and stops while handshakes are open', async (t) => {
    const service = await stage(t).start()
    const port = Number(new URL(service.url).port)
    const silent = await rawClient(`http://127.0.0.1:${port}`)
    const plain = await rawClient(`http://127.0.0.1:${port}`)
    plain.send('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n')
    await plain.closed()
    assert.doesNotMatch(plain.received, /HTTP\/1\.1 200/)
    const broken = connect({ port, host: '127.0.0.1', ca }, () => broken.write('nonsense\r\n\r\n'))
    let received = ''
    broken.on('data', (chunk: Buffer) => (received += chunk.toString('latin1')))
    await eventually('it is refused', () => /HTTP\/1\.1 400 [^]*invalid_value/.test(received))
    await within(20_000, 'the service stops', service.stop())
    await silent.closed()
  })

  it('marks cookies as secure, and shows https addresses', async (t) => {
    const { url, firstKey } = await stage(t).start()
    assert.ok((await call(`${url}/docs`)).body.includes(url))
    const json = { 'content-type': 'application/json', 'x-weir-console': '1' }
    const { headers } = await call(`${url}/console/api/session`, json, { key: firstKey })
    assert.match(headers['set-cookie']?.[0] ?? '', /; Secure$/)
  })

  it('works with workers that share a port', async (t) => {
    const { cert, key } = pair('first')
    const port = sharedPort()
    const worker = fork(new URL('../support/worker-port-program.ts', import.meta.url), ['127.0.0.1', '0', cert, key])
    t.after(() => {
      port.close()
      worker.kill('SIGKILL')
    })
    port.serve(worker)
    const ready = new Promise<number>((resolve) =>
      worker.on('message', (message: { ready?: number }) => message.ready && resolve(message.ready)),
    )
    const number = await within(30_000, 'the worker is ready', ready)
    for (let count = 0; count < 5; count++) {
      const { status, body } = await call(`https://127.0.0.1:${number}/`)
      assert.deepEqual([status, JSON.parse(body)], [200, { pid: worker.pid, address: '127.0.0.1' }])
    }
  })
})
