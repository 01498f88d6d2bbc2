import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { stringify } from 'yaml'
import { CommandFailed, UsageError, type Command } from '../../src/cli/command.ts'
import { keys } from '../../src/workspaces/keys/commands/keys.ts'
import { workspaces } from '../../src/workspaces/commands/workspaces.ts'
import { ApiError } from '../../src/shared/errors.ts'
import { booksStage, price, SLUG, MARCH } from '../support/books-stage.ts'
import { printed, printedOnTerminal } from '../support/printed.ts'
import { scriptedService } from '../support/scripted-service.ts'

describe('weir workspaces', () => {
  it('creates, changes, lists and shows them, and puts that on record', async (t) => {
    const { shown, audit, books } = await booksStage(t)
    assert.equal(await shown('workspaces list'), '(none)')
    const created = (name: string) => `name         ${name}
id           ws_ID
rate limit   600 requests per minute
spend limit  none
created      TODAY (Sydney)

Create a key for it with: weir keys create --workspace `
    assert.equal(await shown('workspaces create acme'), `${created('acme')}acme`)
    assert.equal(await shown('workspaces create "two words"'), `${created('two words')}"two words"`)
    const all =
      '--spend-limit 12.5 --soft --requests-per-minute 7000 --buyer-name "Acme Pty" --buyer-abn 51824753556 --buyer-address "1 Road" --purchase-order PO1'
    const changed = `name         acme
id           ws_ID
rate limit   7,000 requests per minute
spend limit  A$12.50 a month, soft
buyer        Acme Pty
ABN          51 824 753 556
address      1 Road
order        PO1
created      TODAY (Sydney)`
    assert.equal(await shown(`workspaces set acme ${all}`), changed)
    assert.equal(await shown('workspaces show acme'), changed)
    assert.equal(
      await shown('workspaces list'),
      `NAME       PER MINUTE            SPEND LIMIT  BUYER     CREATED
acme            7,000  A$12.50 a month, soft  Acme Pty  TODAY
two words         600                      -  -         TODAY`,
    )
    const hard = await shown('workspaces set acme --hard --json')
    const view = JSON.parse(hard) as { readonly created: string }
    assert.deepEqual(view, {
      id: 'ws_ID',
      name: 'acme',
      requests_per_minute: 7000,
      tokens_per_minute: null,
      spend_limit: '12.50',
      spend_limit_kind: 'hard',
      buyer: { name: 'Acme Pty', abn: '51824753556', address: '1 Road', purchase_order: 'PO1', email: null },
      created: view.created,
    })
    assert.match(
      await shown('workspaces set acme --spend-limit none --requests-per-minute default'),
      /rate limit {3}600 requests[^]*spend limit {2}none/,
    )
    const list = JSON.parse(await shown('workspaces list --json')) as { object: string; data: { name: string }[] }
    assert.deepEqual([list.object, list.data.map(({ name }) => name)], ['list', ['acme', 'two words']])
    assert.deepEqual(await audit(5), [
      ['createWorkspace', '', { name: 'acme' }, 'done'],
      ['createWorkspace', '', { name: 'two words' }, 'done'],
      [
        'changeWorkspace',
        'acme',
        {
          requests_per_minute: 7000,
          spend_limit: '12.5',
          spend_limit_kind: 'soft',
          buyer: { name: 'Acme Pty', abn: '51824753556', address: '1 Road', purchase_order: 'PO1' },
        },
        'done',
      ],
      ['changeWorkspace', 'acme', { spend_limit_kind: 'hard' }, 'done'],
      ['changeWorkspace', 'acme', { spend_limit: null, requests_per_minute: null }, 'done'],
    ])
    const [, , change] = (await books.store.auditLog({ limit: 3 })).map(({ before, after }) => [before, after])
    assert.match(String(change?.[0]), /"spend_limit":null/)
    assert.match(String(change?.[1]), /"spend_limit":"12\.50"/)
    assert.match(await shown('workspaces set acme --requests-per-minute 1'), /^rate limit {3}1 request per minute$/m)
    assert.match(await shown('workspaces set acme --tokens-per-minute 900'), /^token limit {2}900 tokens per minute$/m)
    assert.doesNotMatch(await shown('workspaces set acme --tokens-per-minute none'), /token limit/)
  })

  it('refuse what makes no sense', async (t) => {
    const { failed } = await booksStage(t)
    const name = 'give the name of the workspace: weir workspaces'
    const cases = {
      workspaces: 'choose an action: create, list, show or set',
      'workspaces make': 'choose an action: create, list, show or set',
      'workspaces list acme': 'unexpected argument "acme"; put names with spaces in quotes',
      'workspaces create two words': 'unexpected argument "words"; put names with spaces in quotes',
      'workspaces create': `${name} create NAME`,
      'workspaces show': `${name} show NAME`,
      'workspaces set': `${name} set NAME …`,
      'workspaces set acme': 'give something to change, such as --requests-per-minute N',
      'workspaces set acme --soft --hard': 'give either --soft or --hard',
      'workspaces set acme --nonsense': "Unknown option '--nonsense'",
    }
    for (const [line, message] of Object.entries(cases)) assert.deepEqual(await failed(line), [UsageError, message])
    const [error] = await failed('workspaces show nobody')
    assert.equal(error, ApiError)
  })
})

describe('weir keys', () => {
  it('are created, listed, changed and revoked, and each action is audited', async (t) => {
    const { shown, run, audit, books } = await booksStage(t)
    await books.workspace('acme')
    const other = await books.workspace('other')
    assert.equal(
      await shown('keys create --workspace acme --name site --expires 2199-01-31'),
      'weir_KEY\n\nStore it safely: it is not shown again. Its id is key_ID.',
    )
    const plain = JSON.parse((await run('keys create --workspace other --json')).stdout) as { id: string; key: string }
    assert.match(plain.key, /^weir_/)
    const note = 'Keys that are revoked or have expired are not shown: see them with --all.'
    const heading = 'ID                            KEY         WORKSPACE  NAME  LAST USED  EXPIRES'
    assert.equal(
      (await run('keys list')).stdout
        .replaceAll(/key_\w{24}/g, 'key_'.padEnd(28, 'x'))
        .replaceAll(/weir_…\w{4}/g, 'weir_…LAST'),
      `${heading}
key_xxxxxxxxxxxxxxxxxxxxxxxx  weir_…LAST  other      -     never      -
key_xxxxxxxxxxxxxxxxxxxxxxxx  weir_…LAST  acme       site  never      2199-01-31

${note}
`,
    )
    assert.match(await shown('keys list --workspace acme'), /^ID .*\nkey_ID .* acme .*\n\n/)
    assert.match(await shown('keys list --limit 1'), /^ID .*\nkey_ID .* other .*\n\nThere are more keys: .* key_ID\.\n/)
    assert.match(await shown(`keys list --before ${plain.id}`), /^ID .*\nkey_ID .* acme .*\n\nKeys /)
    const row = await books.row(other, SLUG, await price(books), MARCH, {})
    await books.settle([{ ...row, keyId: plain.id }])
    assert.match(
      await shown(`keys set ${plain.id} --name shop --expires 2199-06-30`),
      /name +shop\n.*\nexpires +2199-07-01 00:00 \(Sydney\)/,
    )
    const set = JSON.parse((await run(`keys set ${plain.id} --expires never --json`)).stdout) as object
    assert.partialDeepStrictEqual(set, { id: plain.id, name: 'shop', expires_at: null })
    assert.equal(
      await shown(`keys revoke ${plain.id}`),
      `id         key_ID\nkey        weir_…${plain.key.slice(-4)}\nworkspace  other\nname       shop\ncreated    TODAY (Sydney)\nlast used  2025-03-15 12:30 (Sydney)\nrevoked    TODAY (Sydney)`,
    )
    const limited = `keys create --workspace acme --manage-keys yes --requests-per-minute 5 --tokens-per-minute 1 --spend-per-day 2.5 --spend-per-month 50 --models ${SLUG},test-8b --endpoints /chat/completions,/rerank --addresses 10.0.0.0/8,::1 --json`
    const { id } = JSON.parse((await run(limited)).stdout) as { id: string }
    assert.match(
      await shown(`keys revoke ${id}`),
      /last used +never\nrevoked .*\nmanages keys +yes\nrate limit +5 requests per minute\ntoken limit +1 token per minute\nspend per day +A\$2\.50 \(excluding GST\)\nspend per month +A\$50\.00 \(excluding GST\)\nmodels +meta\/test-8b, test-8b\nendpoints +\/?chat\/completions, \/?rerank\naddresses +10\.0\.0\.0\/8, ::1$/,
    )
    assert.doesNotMatch(await shown('keys list'), /other/)
    assert.match(
      await shown('keys list --all'),
      /STATE\n.* acme .* revoked\nkey_ID .* other .* revoked\nkey_ID .* acme .* works$/,
    )
    const json = JSON.parse((await run('keys list --json')).stdout) as { data: { id: string }[]; next: null }
    assert.deepEqual([json.data.length, json.next], [3, null])
    await run('keys revoke none')
    assert.deepEqual((await audit(8)).toSpliced(5, 2), [
      ['createKey', '', { workspace: 'acme', name: 'site', expires_at: '2199-01-31' }, 'done'],
      ['createKey', '', { workspace: 'other' }, 'done'],
      ['changeKey', plain.id, { name: 'shop', expires_at: '2199-06-30' }, 'done'],
      ['changeKey', plain.id, { expires_at: null }, 'done'],
      ['revokeKey', plain.id, null, 'done'],
      ['revokeKey', 'none', null, 'refused'],
    ])
    await run(
      `keys set none --requests-per-minute 5 --models a/b,c/d --endpoints chat/completions --addresses 10.0.0.0/8`,
    )
    const limits = { allowed_models: ['a/b', 'c/d'], allowed_endpoints: ['chat/completions'] }
    assert.deepEqual(await audit(1), [
      ['changeKey', 'none', { requests_per_minute: 5, ...limits, allowed_addresses: ['10.0.0.0/8'] }, 'refused'],
    ])
    const [, , revoked] = await books.store.auditLog({ limit: 3 })
    assert.match(String(revoked?.before), /"revoked":null/)
    assert.match(String(revoked?.after), /"revoked":"/)
  })

  it('refuse what makes no sense', async (t) => {
    const { failed, shown } = await booksStage(t)
    const limit = '--limit must be a whole number from 1 to 10000'
    const cases = {
      keys: 'choose an action: create, list, set or revoke',
      'keys make': 'choose an action: create, list, set or revoke',
      'keys create': '--workspace is required',
      'keys create --workspace ""': '--workspace is required',
      'keys list more': 'unexpected argument "more"; put names with spaces in quotes',
      'keys set': 'give the id of the key: weir keys set ID …',
      'keys set a': 'give something to change: --name, --expires or a limit such as --requests-per-minute N',
      'keys set a b': 'unexpected argument "b"; put names with spaces in quotes',
      'keys revoke': 'give the id of the key: weir keys revoke ID',
      'keys revoke a b': 'unexpected argument "b"; put names with spaces in quotes',
      'keys list --limit 0': limit,
      'keys list --limit 10001': limit,
      'keys list --limit 1.5': limit,
    }
    for (const [line, message] of Object.entries(cases)) assert.deepEqual(await failed(line), [UsageError, message])
    assert.match(await shown('keys list --limit 10000'), /^\(none\)\n\n/)
    assert.equal((await failed('keys create --workspace acme --expires never'))[0], ApiError)
    for (const line of ['keys set a --expires soon', 'keys create --workspace acme --expires soon']) {
      assert.match(String((await failed(line))[1]), /^'expires' must be a date/)
    }
  })
})

describe('a command on the ledger', () => {
  it('creates no ledger in the wrong directory, unless --data names it, and then reports it', async (t) => {
    const { books } = await booksStage(t)
    const folder = join(books.dataDir, 'elsewhere')
    const { stderr, failure } = await printed(workspaces, 'list', '--data', folder)
    assert.equal(failure, undefined)
    assert.equal(stderr, `weir: created a new ledger in ${folder}\n`)
    assert.equal((await printed(workspaces, 'list', '--data', folder)).stderr, '')
    const quiet = await printed(workspaces, 'list', '--json', '--data', `${folder}-2`)
    assert.equal(quiet.stderr, '')
    const config = join(books.dataDir, 'other.yaml')
    writeFileSync(config, stringify({ data_dir: 'there', models: [] }))
    const there = join(books.dataDir, 'there')
    const refused = await printed(workspaces, 'list', '--config', config)
    assert.ok(refused.failure instanceof CommandFailed)
    assert.equal(
      refused.failure.message,
      `there is no ledger in ${there}; weir serve creates one, and --data DIR names another directory`,
    )
    assert.ok(!existsSync(there))
    assert.equal((await printed(workspaces, 'create', 'x', '--config', config)).failure, undefined)
    assert.equal((await printed(workspaces, 'list', '--config', config)).failure, undefined)
  })

  it('makes a running service apply a change, and names replicas that did not answer', async (t) => {
    const { run, dataDir } = await booksStage(t)
    let asked = 0
    const reloads = {
      async accounts() {
        asked += 1
        return ['one', 'two']
      },
      catalog: async () => ({ models: 0, unreached: [], needsRestart: [] }),
    }
    await scriptedService(t, dataDir, { reloads })
    const note = 'weir: this replica did not answer, and takes the change in when it can:'
    assert.equal((await run('workspaces create acme')).stderr, `${note} one\n${note} two\n`)
    assert.equal((await run('workspaces list')).stderr, '')
    assert.equal(asked, 1)
  })
})

describe('a command on a narrow terminal', () => {
  it('truncates long text, but not what the next command needs', async (t) => {
    const { books, config } = await booksStage(t)
    const long = 'a-workspace-with-a-name-that-takes-half-of-the-line'
    await books.workspace(long)
    const options = ['--config', config, '--data', books.dataDir]
    const shown = (command: Command, ...args: readonly string[]): Promise<string> =>
      printedOnTerminal(60, command, ...args, ...options)
    const buyer = 'A buyer with a name that takes half of the line too'
    await shown(workspaces, 'set', long, '--buyer-name', buyer)
    assert.match(
      await shown(workspaces, 'list'),
      /^NAME +PER MINUTE +BUYER +CREATED\na-workspa\S*… +600 +A buyer w.*… +2025-03-15\n$/,
    )
    await shown(keys, 'create', '--workspace', long, '--name', 'A name that is about as long as this')
    const listed = await shown(keys, 'list')
    assert.match(listed, /\nkey_[0-9a-f]{24}\n? +weir_…\w{4} +a-\S*… +A n.*… +never\n/)
    for (const line of listed.split('\n').slice(0, 3)) assert.ok(line.length <= 60, line)
  })
})
