import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import type { InvoiceDocument } from '../../src/billing/invoices/invoice-document.ts'
import { openParts } from '../../src/compose/open-parts.ts'
import { loadConfig } from '../../src/config.ts'
import { RUNTIME_NAME } from '../../src/local-models/files/runtime-files.ts'
import { liveSettings } from '../../src/operate/reload/live-settings.ts'
import { createTelemetry } from '../../src/operate/telemetry/telemetry.ts'
import { systemClock } from '../../src/shared/system-clock.ts'

/** Opens the parts of a service, closes them, and returns how many there were to close and how many files are watched. */
async function opened(t: TestContext, content: object, changes: { worker?: number; file?: undefined } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'weir-parts-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'weir.yaml')
  writeFileSync(file, JSON.stringify(content))
  const config = { ...loadConfig({ config: file, data: join(folder, 'data') }, {}), ...changes }
  const stack = new AsyncDisposableStack()
  const adopted = t.mock.method(stack, 'adopt')
  const telemetry = createTelemetry('silent', 'test')
  const start = { config, clock: systemClock, opened: stack, telemetry, settings: liveSettings(config) }
  const { watched, store, downloadAlerts, invoicing } = await openParts(start, assert.fail)
  const added = t.mock.method(store, 'addEvents')
  for (const name of ['meta/x', RUNTIME_NAME]) downloadAlerts.ready?.(name)
  const downloads = added.mock.calls.flatMap(({ arguments: [events] }) => events.map(({ data }) => data))
  const document = { number: 'INV-1', workspace: 'acme' } as InvoiceDocument
  const refusal = await invoicing.emails.send(document, null).catch((error: Error) => error.message)
  await stack.disposeAsync()
  await telemetry.close()
  return { closed: adopted.mock.callCount(), watched: watched.length, downloads, refusal }
}

describe('the parts of a service', () => {
  it('send e-mail only where SMTP is configured; among workers, the first one sends it and events', async (t) => {
    const smtp = { smtp: { host: '127.0.0.1', from: 'weir@example.com' } }
    const { closed, refusal, downloads } = await opened(t, {})
    assert.match(String(refusal), /sends no e-mail/)
    assert.deepEqual(downloads, ['{"model":"meta/x"}'])
    const withSmtp = await opened(t, smtp, { worker: 1 })
    assert.equal(withSmtp.closed, closed + 1)
    assert.doesNotMatch(String(withSmtp.refusal), /sends no e-mail/)
    const second = await opened(t, smtp, { worker: 2 })
    assert.equal(second.closed, closed - 2, 'without the watch and the deliveries')
    assert.deepEqual(second.downloads, [])
  })

  it('watch the file of the configuration, which has the catalog, or the place where it may appear', async (t) => {
    const { watched } = await opened(t, { models: [] })
    assert.equal(watched, 1)
    assert.equal((await opened(t, { models: [] }, { file: undefined })).watched, 2)
  })
})
