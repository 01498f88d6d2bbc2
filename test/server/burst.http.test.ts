import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { stringify } from 'yaml'
import { collect, startCli, startNote } from '../support/cli.ts'
import { eventually } from '../support/waiting.ts'
import { modelEntry } from '../support/weir.ts'

/** What the operating system allows at most. */
const allowed = Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8'))

describe('a burst of new connections', () => {
  it('is queued by the operating system while the service is busy, and no caller is refused', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'weir-burst-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const config = join(folder, 'weir.yaml')
    const models = [modelEntry(['http://127.0.0.1:9/v1'])]
    const server = { port: 0, admin_port: 0, drain_ms: 0 }
    writeFileSync(config, stringify({ server, data_dir: join(folder, 'data'), models }))
    const child = startCli(['serve', '--config', config])
    t.after(() => child.kill('SIGKILL'))
    const stdout = collect(child.stdout)
    await eventually('the service runs', () => stdout().endsWith('\n') || child.exitCode !== null, 30_000)
    const port = Number(new URL(startNote(stdout()).api).port)
    // Nothing is busier than a process that stands still.
    child.kill('SIGSTOP')
    let connected = 0
    const callers = Array.from({ length: Math.min(1500, allowed) }, () =>
      connect(port, '127.0.0.1', () => (connected += 1)).on('error', () => {}),
    )
    t.after(() => callers.forEach((socket) => socket.destroy()))
    await eventually('all are connected', () => connected === callers.length, 10_000)
    assert.ok(callers.length > 100)
  })
})
