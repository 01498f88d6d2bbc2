import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { loadedModels } from '../host/loaded-models.ts'

function pool(memoryBudgetBytes: number) {
  const events: string[] = []
  const models = loadedModels({
    memoryBudgetBytes,
    log: () => {},
    find: (slug) => ({
      slug,
      expectedBytes: 40,
      async load() {
        events.push(`load ${slug}`)
        if (slug === 'broken') throw new Error('bad file')
        return { memoryBytes: 40, close: async () => void events.push(`close ${slug}`) }
      },
    }),
  })
  return { models, events }
}

describe('loaded models', () => {
  it('load once for many requests, and stay while there is room', async () => {
    const { models, events } = pool(100)
    await Promise.all([models.use('a', async () => {}), models.use('a', async () => {})])
    await models.use('b', async () => {})
    await models.use('a', async () => {})
    assert.deepEqual(events, ['load a', 'load b'])
    assert.equal(models.memoryBytes(), 80)
  })

  it('over budget, unload the one that was idle longest', async () => {
    const { models, events } = pool(100)
    for (const slug of ['a', 'b', 'a', 'c']) await models.use(slug, async () => {})
    assert.deepEqual(events, ['load a', 'load b', 'close b', 'load c'])
  })

  it('never unload one in use, and refuse one that does not fit beside it', async () => {
    const { models, events } = pool(60)
    const { promise, resolve } = Promise.withResolvers<void>()
    const using = models.use('a', () => promise)
    await assert.rejects(
      models.use('b', async () => {}),
      { code: 'model_overloaded' },
    )
    resolve()
    await using
    await models.use('b', async () => {})
    assert.deepEqual(events, ['load a', 'close a', 'load b'])
  })

  it('run one that is larger than the budget alone, and unload it afterwards', async () => {
    const { models, events } = pool(10)
    await models.use('a', async () => {})
    assert.deepEqual(events, ['load a', 'close a'])
  })

  it('are listed, and leave when they are unloaded, after their requests', async () => {
    const { models, events } = pool(100)
    await models.use('a', async () => {})
    const { promise, resolve } = Promise.withResolvers<void>()
    const using = models.use('b', () => promise)
    await models.unload('a')
    await models.unload('b')
    await models.unload('unknown')
    assert.deepEqual(events, ['load a', 'load b', 'close a'])
    assert.deepEqual(models.list(), [{ model: 'b', bytes: 40, requests: 1 }])
    resolve()
    await using
    assert.deepEqual(events, ['load a', 'load b', 'close a', 'close b'])
    assert.deepEqual(models.list(), [])
  })

  it('retry a failed load with the next request', async () => {
    const { models, events } = pool(100)
    await assert.rejects(
      models.use('broken', async () => {}),
      /bad file/,
    )
    await assert.rejects(
      models.use('broken', async () => {}),
      /bad file/,
    )
    assert.deepEqual(events, ['load broken', 'load broken'])
    assert.equal(models.memoryBytes(), 0)
  })
})
