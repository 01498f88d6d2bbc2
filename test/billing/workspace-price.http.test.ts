import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chatStage, refusalOf } from '../support/chat-stage.ts'

describe('the price of a workspace', () => {
  it('is set and removed by the slug of the model or by a short id', async (t) => {
    const { weir } = await chatStage(t)
    const own = async () => {
      const listed = await weir.admin('GET', '/admin/v1/workspaces/default/prices')
      return ((await listed.json()) as { data: { model: string }[] }).data.map(({ model }) => model)
    }
    for (const name of ['meta/test-8b', 'test-8b']) {
      const path = `/admin/v1/workspaces/default/prices/${name}`
      assert.equal((await weir.admin('PUT', path, { input_per_million: '0.10' })).status, 200)
      assert.deepEqual(await own(), ['meta/test-8b'])
      assert.equal((await weir.admin('DELETE', path)).status, 200)
      assert.deepEqual(await own(), [])
    }
    const unknown = await weir.admin('PUT', '/admin/v1/workspaces/default/prices/none', { input_per_million: '0.10' })
    assert.equal((await refusalOf(unknown)).code, 'model_not_found')
  })
})
