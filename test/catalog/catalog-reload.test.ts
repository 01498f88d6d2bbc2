import assert from 'node:assert/strict'
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { openCatalog, watchFile, type FilePolling } from '../../src/catalog/catalog.ts'
import { parseCatalog } from '../../src/catalog/file.ts'
import { eventually, within } from '../support/waiting.ts'
import { turn } from '../support/hand-clock.ts'

const entryOf = (id: string) => ({ id, categories: ['llm'], context_length: 10, pricing: { input_per_million: '1' } })
const textOf = (...ids: string[]): string => JSON.stringify({ models: ids.map(entryOf) })

interface Options {
  readonly prepare?: () => Promise<() => void>
  readonly onRead?: (file: string) => void
  readonly polling?: FilePolling | 'usual'
}

const quick: FilePolling = { pollMs: 1, pollsMax: 50 }

async function stage(t: TestContext, { prepare = async () => () => {}, onRead, polling = quick }: Options = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'weir-catalog-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'weir.yaml')
  let text = textOf('a/b')
  let reads = 0
  const write = (...ids: string[]): void => {
    text = textOf(...ids)
    writeFileSync(file, text)
  }
  const read = () => {
    reads++
    onRead?.(file)
    return parseCatalog(text, file, () => undefined)
  }
  write('a/b')
  const catalog = await openCatalog({ file, read }, prepare, ...(polling === 'usual' ? [] : [polling]))
  return { file, catalog, write, reads: () => reads, names: () => catalog.models().map(({ id }) => id) }
}

describe('a reload of the catalog', () => {
  it('reads the file when it has not changed for a fifth of a second', async (t) => {
    const { catalog, write, names } = await stage(t, { polling: 'usual' })
    write('a/c')
    const started = performance.now()
    await within(30_000, 'the file is read', catalog.reload())
    assert.ok(performance.now() - started > 190)
    assert.deepEqual(names(), ['a/c'])
  })

  it('fails if the file keeps changing, and keeps the old catalog', async (t) => {
    const polling = { pollMs: 1, pollsMax: 5 }
    const { catalog, file, names, reads } = await stage(t, { polling, onRead: (it) => appendFileSync(it, ' ') })
    await assert.rejects(catalog.reload(), { message: `${file}: is still being written` })
    assert.deepEqual([names(), reads()], [['a/b'], 3])
  })

  it('is prepared before it is visible, one at a time', async (t) => {
    const steps: string[] = []
    const held: (() => void)[] = []
    const { catalog, write, names } = await stage(t, {
      prepare: async () => {
        steps.push('prepare')
        if (steps.length > 2) await new Promise<void>((resolve) => held.push(resolve))
        return () => steps.push('switch over')
      },
    })
    write('a/c')
    const [first, second] = [catalog.reload(), catalog.change((models) => [...models, ...models])]
    await eventually('the reload is prepared', () => held.length === 1)
    assert.deepEqual(names(), ['a/b'])
    held[0]?.()
    await first
    assert.deepEqual(names(), ['a/c'])
    await eventually('the change is prepared', () => held.length === 2)
    held[1]?.()
    await second
    assert.deepEqual(names(), ['a/c', 'a/c'])
    assert.deepEqual(steps, Array.from({ length: 3 }, () => ['prepare', 'switch over']).flat())
  })

  it('that loses all models needs force, and its failure does not stop the next one', async (t) => {
    const { catalog, write, names } = await stage(t)
    write()
    await assert.rejects(catalog.reload(), /it has no models\. If that is intended, run weir reload --force/)
    assert.deepEqual(names(), ['a/b'])
    await catalog.reload({ force: true })
    assert.deepEqual(names(), [])
  })

  it('replaces names and aliases; a model that a workspace may not see does not exist for it', async (t) => {
    const { catalog, write } = await stage(t)
    write('a/c')
    await catalog.reload()
    assert.deepEqual([catalog.find('a/b', 'acme'), catalog.find('a/c', 'acme')?.id], [undefined, 'a/c'])
    assert.throws(() => catalog.resolve('a/b', 'acme'), { code: 'model_not_found', param: 'model' })
    await catalog.change((models) => models.map((model) => ({ ...model, aliases: ['c'], visibleTo: ['acme'] })))
    assert.deepEqual([catalog.find('c', 'acme')?.id, catalog.find('c', 'other')], ['a/c', undefined])
  })
})

describe('a watched file', () => {
  it('is polled every half second, reported once for a change, and not after the end', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const { file, write } = await stage(t)
    let changes = 0
    const end = watchFile(file).onChange(() => changes++)
    const polls = async (count: number): Promise<number> => {
      for (let index = 0; index < count; index++) {
        t.mock.timers.tick(500)
        // The poll itself is under way.
        for (let tries = 0; tries < 10; tries++) await stat(file).catch(turn)
      }
      return changes
    }
    assert.equal(await polls(2), 0)
    write('a/c', 'a/d')
    assert.equal(await polls(1), 0, 'it may still be written')
    await eventually('the change is seen', async () => (await polls(1)) === 1)
    assert.equal(await polls(3), 1)
    rmSync(file)
    assert.equal(await polls(3), 1, 'an editor replaces it')
    write('a/e')
    end()
    assert.equal(await polls(3), 1)
  })
})
