import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { keptOperatorToken } from '../../src/accounts/operator-token.ts'
import { findService, publishService, refreshService, withdrawService } from '../../src/running-service.ts'
import { takeServiceLock } from '../../src/store/sqlite/service-lock.ts'

function emptyFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'weir-note-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

const modeOf = (file: string): number => statSync(file).mode & 0o777

/** A service that answers every request of a command with this status. */
async function service(t: TestContext, status: number) {
  const dataDir = emptyFolder(t)
  const requests: IncomingMessage[] = []
  const server = createServer((request, response) => {
    requests.push(request)
    response.writeHead(status).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  publishService(dataDir, { url, adminUrl: url, operatorToken: 'the-token', pid: process.pid })
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { dataDir, requests }
}

function runOn(t: TestContext, dataDir: string): void {
  const lock = takeServiceLock(dataDir)
  t.after(() => lock.close())
}

describe('the note of a running service', () => {
  it('is only for its owner, since it has the operator token', async (t) => {
    const { dataDir } = await service(t, 200)
    assert.equal(modeOf(join(dataDir, 'service.json')), 0o600)
  })

  it('counts only while the service holds its lock, and until it is withdrawn', async (t) => {
    const { dataDir } = await service(t, 200)
    assert.equal(findService(dataDir), undefined)
    runOn(t, dataDir)
    assert.equal(findService(dataDir)?.operatorToken, 'the-token')
    withdrawService(dataDir)
    assert.equal(findService(dataDir), undefined)
  })

  it('lets a command tell the service about a change', async (t) => {
    const { dataDir, requests } = await service(t, 200)
    runOn(t, dataDir)
    await refreshService(dataDir)
    assert.deepEqual(
      requests.map(({ method, url, headers }) => [method, url, headers.authorization]),
      [['POST', '/admin/v1/accounts/reload', 'Bearer the-token']],
    )
  })

  for (const status of [401, 404, 500]) {
    it(`makes a command fail if the service refuses the change with ${status}`, async (t) => {
      const { dataDir } = await service(t, status)
      runOn(t, dataDir)
      await assert.rejects(refreshService(dataDir), new RegExp(`did not take the change \\(status ${status}\\)`))
    })
  }

  it('keeps no command waiting when the service has gone', async (t) => {
    const { dataDir, requests } = await service(t, 500)
    await refreshService(dataDir)
    assert.equal(requests.length, 0)
  })
})

describe('the lock of a service', () => {
  it('is for one service at a time, and free again when it is given back', (t) => {
    const dataDir = emptyFolder(t)
    const lock = takeServiceLock(dataDir)
    assert.throws(() => takeServiceLock(dataDir), /locked/)
    lock.close()
    takeServiceLock(dataDir).close()
  })
})

describe('an operator token that nobody configured', () => {
  it('is made once, hard to guess, in a file that only its owner can read', (t) => {
    const dataDir = emptyFolder(t)
    const token = keptOperatorToken(dataDir)
    assert.match(token, /^weir_operator_[0-9a-f]{64}$/)
    assert.equal(keptOperatorToken(dataDir), token)
    assert.equal(modeOf(join(dataDir, 'operator-token')), 0o600)
  })
})
