import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { SMTPServer } from 'smtp-server'
import { stageConfig } from '../support/chat-stage.ts'
import { copyToLastMonth, lastMonth } from '../support/last-month.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { startWeir, type TestWeir } from '../support/weir.ts'

/** A service with SMTP sends what it issues, and again on request. */

interface Answer {
  readonly email: { readonly state: string; readonly recipient: string; readonly sent_at: string | null } | null
}

let engine: ScriptedEngine
let weir: TestWeir
let mailbox: SMTPServer
const recipients: string[] = []

before(async () => {
  mailbox = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData(stream, { envelope }, done) {
      stream.resume()
      stream.on('end', () => {
        recipients.push(...envelope.rcptTo.map(({ address }) => address))
        done()
      })
    },
  })
  mailbox.listen(0, '127.0.0.1')
  await once(mailbox.server, 'listening')
  const { port } = mailbox.server.address() as AddressInfo
  engine = await scriptedEngine()
  const seller = { name: 'Example Pty Ltd', abn: '51 824 753 556' }
  const smtp = { host: '127.0.0.1', port, from: 'invoices@example.com' }
  weir = await startWeir(stageConfig([engine.url], { config: { seller, smtp } }))
  engine.script = { promptTokens: 1000, tokens: ['a', 'b'] }
  await (await weir.chat({})).text()
  await copyToLastMonth(weir, 1000)
})
after(async () => {
  await weir.stop()
  await engine.close()
  await new Promise<void>((done) => {
    mailbox.close(done)
  })
})

const read = async (response: Response) => ((await response.json()) as Answer).email
const show = async () => read(await weir.admin('GET', '/admin/v1/invoices/INV-000001'))
const send = (number = 'INV-000001') => weir.admin('POST', `/admin/v1/invoices/${number}/email`)
const setAddress = (email: string | null) => weir.admin('PATCH', '/admin/v1/workspaces/default', { buyer: { email } })

async function untilSent(count: number): Promise<void> {
  while (recipients.length < count || (await show())?.state !== 'sent') await sleep(100)
}

describe('a service with SMTP', () => {
  it('sends an invoice that it issues, shows that it was sent, and sends it again on request', async () => {
    assert.equal((await setAddress('accounts@acme.example')).status, 200)
    const body = { workspace: 'default', period: lastMonth.name }
    const issued = await weir.admin('POST', '/admin/v1/invoices', body)
    assert.equal(issued.status, 201)
    assert.equal((await read(issued))?.recipient, 'accounts@acme.example')
    await untilSent(1)
    const list = (await (await weir.admin('GET', '/admin/v1/invoices')).json()) as { data: Answer[] }
    assert.deepEqual(
      list.data.map(({ email }) => email?.state),
      ['sent'],
    )
    assert.equal((await setAddress('new@acme.example')).status, 200)
    const again = await send()
    assert.equal(again.status, 200)
    assert.equal((await read(again))?.state, 'queued')
    await untilSent(2)
    assert.deepEqual(recipients, ['accounts@acme.example', 'new@acme.example'])
    const log = (await (await weir.admin('GET', '/admin/v1/audit-log?limit=1')).json()) as {
      data: { action: string; subject: string }[]
    }
    assert.deepEqual([log.data[0]?.action, log.data[0]?.subject], ['sendInvoice', 'INV-000001'])
  })

  it('refuses to send a document that does not exist, or to a buyer without an address', async () => {
    assert.equal((await send('INV-000009')).status, 404)
    await setAddress(null)
    const refused = await send()
    assert.equal(refused.status, 409)
    assert.match(await refused.text(), /--buyer-email/)
  })
})
