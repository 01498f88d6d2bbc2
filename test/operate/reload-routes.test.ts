import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { reloadRoutes } from '../../src/operate/routes/reload.ts'
import { askDocumented } from '../support/route-answer.ts'

describe('a reload, over the API', () => {
  const forced: boolean[] = []
  const routes = reloadRoutes({
    reloads: {
      accounts: async () => ['other'],
      async catalog({ force }) {
        forced.push(force)
        if (!force) throw new Error('line 3 is wrong')
        return { models: 7, unreached: ['other'], needsRestart: [{ key: 'server.port', value: 80, needs: 'restart' }] }
      },
    },
  })

  it('of accounts names the replicas that did not answer', async () => {
    const { body } = await askDocumented(routes, 'POST /admin/v1/accounts/reload')
    assert.deepEqual(body, { reloaded: true, unreached: ['other'] })
  })

  it('of the catalog is forced on request, and reports what needs a restart, or the mistake', async () => {
    const reload = (query: string) => askDocumented(routes, `POST /admin/v1/catalog/reload${query}`)
    for (const query of ['', '?force=false'])
      await assert.rejects(reload(query), { code: 'invalid_value', message: 'line 3 is wrong' })
    const { body } = await reload('?force=true')
    assert.deepEqual(body, {
      reloaded: true,
      models: 7,
      unreached: ['other'],
      needs_restart: [{ key: 'server.port', value: '80' }],
    })
    assert.deepEqual(forced, [false, false, true])
  })
})
