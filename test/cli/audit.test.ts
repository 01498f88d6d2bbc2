import assert from 'node:assert/strict'
import { userInfo } from 'node:os'
import { describe, it } from 'node:test'
import { stageConfig } from '../support/chat-stage.ts'
import { commandLine } from '../support/command-line.ts'
import { scriptedEngine } from '../support/scripted-engine.ts'
import { startWeir } from '../support/weir.ts'

interface Entry {
  readonly actor: string
  readonly request_id: string
  readonly action: string
  readonly subject: string
  readonly request: string | null
  readonly before: string | null
  readonly after: string | null
  readonly outcome: string
}

describe('a command that changes something', () => {
  it('is in the audit log, with the user, the state before and after, and no secret', async (t) => {
    const engine = await scriptedEngine()
    const weir = await startWeir(stageConfig([engine.url]))
    t.after(async () => {
      await weir.stop()
      await engine.close()
    })
    const run = async (...args: string[]) =>
      commandLine([...args, '--config', weir.configFile, '--data', weir.dataDir, '--json'])
    await run('workspaces', 'create', 'acme')
    await run('workspaces', 'set', 'acme', '--spend-limit', '250')
    const { id, key } = (await run('keys', 'create', '--workspace', 'acme', '--name', 'website')).json() as {
      id: string
      key: string
    }
    await run('keys', 'revoke', id)
    await run('keys', 'revoke', 'none')
    const price = ['--workspace', 'acme', '--model', 'meta/test-8b']
    await run('prices', 'set', ...price, '--input-per-million', '0.10')
    await run('invoice', 'issue', '--workspace', 'acme', '--period', '2001-01')
    await run('usage', 'correct', 'none', '--reason', 'a mistake')
    await run('reload')
    await run('models', 'remove', 'weir/starter-vision')
    await run('models', 'remove', 'qwen/qwen3-8b')
    await run('models', 'list')
    await run('workspaces', 'show', 'acme')

    const { data } = (await (await weir.admin('GET', '/admin/v1/audit-log')).json()) as { data: Entry[] }
    const entries = data.toReversed()
    assert.deepEqual(
      entries.map(({ action, subject, outcome }) => [action, subject, outcome]),
      [
        ['createWorkspace', '', 'done'],
        ['changeWorkspace', 'acme', 'done'],
        ['createKey', '', 'done'],
        ['revokeKey', id, 'done'],
        ['revokeKey', 'none', 'refused'],
        ['setWorkspacePrice', 'acme meta/test-8b', 'done'],
        ['issueInvoice', '', 'refused'],
        ['correctUsage', 'none', 'refused'],
        ['reloadCatalog', '', 'done'],
        ['removeModel', 'weir/starter-vision', 'refused'],
        ['removeModel', 'qwen/qwen3-8b', 'done'],
      ],
    )
    for (const { actor, request_id: request } of entries) {
      assert.ok(actor.startsWith(`command by ${userInfo().username} on `), actor)
      assert.equal(request, '')
    }
    const changed = entries[1]
    assert.equal((JSON.parse(changed?.before ?? '') as { spend_limit: null }).spend_limit, null)
    assert.equal((JSON.parse(changed?.after ?? '') as { spend_limit: string }).spend_limit, '250.00')
    assert.equal((JSON.parse(entries[3]?.before ?? '') as { revoked: null }).revoked, null)
    assert.ok((JSON.parse(entries[3]?.after ?? '') as { revoked: string }).revoked)
    const priced = JSON.parse(entries[5]?.after ?? '') as { pricing: { input_per_million: string } }
    assert.equal(priced.pricing.input_per_million, '0.10')
    assert.deepEqual(JSON.parse(entries.at(-1)?.before ?? ''), { state: 'not downloaded', received_bytes: 0 })
    assert.ok(!JSON.stringify(data).includes(key))
  })
})
