import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { openStore } from '../../src/store/open.ts'
import { commandLine } from '../support/command-line.ts'
import { scriptedEngine, type ScriptedEngine } from '../support/scripted-engine.ts'
import { modelEntry, startWeir, type TestWeir } from '../support/weir.ts'
import { noLimits } from '../support/key-limits.ts'

/** More keys than fit on a page. */

interface KeyPage {
  readonly data: readonly { readonly id: string; readonly revoked: string | null }[]
  readonly next: string | null
}

let engine: ScriptedEngine
let weir: TestWeir

before(async () => {
  engine = await scriptedEngine()
  weir = await startWeir({ models: [modelEntry([engine.url])] })
  await weir.admin('POST', '/admin/v1/workspaces', { name: 'many' })
  const store = await openStore({ dataDir: weir.dataDir, exclusive: false })
  try {
    const workspaceId = (await store.workspaces()).find(({ name }) => name === 'many')?.id ?? ''
    for (let index = 0; index < 25; index++) {
      const id = `key_many${String(index).padStart(2, '0')}`
      const times = { createdAt: 1000 + Math.floor(index / 3), expiresAt: null, revokedAt: null, ...noLimits }
      await store.createKey({ id, workspaceId, hash: `hash of ${id}`, ending: null, name: null, ...times })
    }
    await store.revokeKey('key_many07', 2000)
  } finally {
    await store.close()
  }
})
after(async () => {
  await weir.stop()
  await engine.close()
})

const names = (indexes: readonly number[]): string[] =>
  indexes.map((index) => `key_many${String(index).padStart(2, '0')}`)
const newestFirst = Array.from({ length: 25 }, (_, index) => 24 - index)

async function pages(query: string): Promise<string[][]> {
  const all: string[][] = []
  for (let before = ''; ;) {
    const response = await weir.admin('GET', `/admin/v1/keys?workspace=many&${query}${before}`)
    assert.equal(response.status, 200)
    const { data, next } = (await response.json()) as KeyPage
    all.push(data.map(({ id }) => id))
    if (next === null) return all
    before = `&before=${next}`
  }
}

describe('lists of keys', () => {
  it('are served in pages, the newest first, each key once', async () => {
    const all = await pages('limit=10')
    assert.deepEqual(
      all.map((page) => page.length),
      [10, 10, 5],
    )
    assert.deepEqual(all.flat(), names(newestFirst))
  })

  it('omit keys that are not valid, on request', async () => {
    assert.deepEqual((await pages('limit=24&state=valid')).flat(), names(newestFirst.filter((index) => index !== 7)))
  })

  it('refuse a page or a workspace that does not exist', async () => {
    for (const [query, code] of [
      ['before=key_none', 'invalid_value'],
      ['limit=1001', 'invalid_value'],
      ['workspace=nobody', 'not_found'],
    ]) {
      const response = await weir.admin('GET', `/admin/v1/keys?${query}`)
      const { error } = (await response.json()) as { error: { code: string } }
      assert.equal(error.code, code, query)
    }
  })

  it('continue in weir keys list with --before', async () => {
    const where = ['--config', weir.configFile, '--data', weir.dataDir, '--workspace', 'many', '--limit', '20']
    const first = await commandLine(['keys', 'list', ...where])
    assert.match(first.stdout, /There are more keys: see them with --before key_many04\.\n/)
    const rest = (await commandLine(['keys', 'list', ...where, '--before', 'key_many04', '--json'])).json<KeyPage>()
    assert.deepEqual([rest.data.map(({ id }) => id), rest.next], [names([3, 2, 1, 0]), null])
    assert.match(
      (await commandLine(['keys', 'list', ...where, '--limit', '0'])).stderr,
      /--limit must be a whole number/,
    )
  })
})
