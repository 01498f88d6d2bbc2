import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Deployment, Model } from '../../src/catalog/model.ts'
import { withoutDeployment, withoutUsableEngine, type Unavailable } from '../../src/catalog/unavailable-model.ts'

const model = (dedicated: readonly object[] = []) => ({ id: 'a/b', dedicated }) as unknown as Model
const deployment = (engine: object | undefined) => ({ engine }) as unknown as Deployment
const seen = ({ reason, error }: Unavailable) => [reason, error.code, error.param, error.waitingHelps]

describe('a model that cannot be called', () => {
  it('has no deployment for the workspace: none at all, or only reserved ones', () => {
    assert.deepEqual(seen(withoutDeployment(model())).slice(0, 3), [
      'model_not_configured',
      'model_not_configured',
      'model',
    ])
    const denied = withoutDeployment(model([{}]))
    assert.deepEqual(seen(denied).slice(0, 3), ['model_access_denied', 'model_access_denied', 'model'])
    assert.match(denied.error.message, /only on reserved capacity/)
  })

  it('has no engine, engines that are down, or files that are missing', () => {
    const none = withoutUsableEngine(model(), deployment(undefined), undefined)
    assert.deepEqual(seen(none).slice(0, 3), ['model_not_configured', 'model_not_configured', 'model'])
    const down = withoutUsableEngine(model(), deployment({}), undefined)
    assert.deepEqual(seen(down).slice(0, 3), ['model_unavailable', 'model_unavailable', 'model'])
    assert.match(down.error.message, /Every engine of a\/b is down/)
    const files = { slug: 'b', bytes: 5_000_000_000, isArriving: false, isPaused: false }
    const missing = withoutUsableEngine(model(), deployment({}), files)
    assert.deepEqual(seen(missing), ['not_downloaded', 'model_not_configured', 'model', false])
    assert.match(missing.error.message, /is not downloaded \(.*GB\).*weir models pull b$/)
    const paused = withoutUsableEngine(model(), deployment({}), { ...files, isPaused: true })
    assert.deepEqual(seen(paused), ['not_downloaded', 'model_not_configured', 'model', false])
    assert.match(paused.error.message, /^The download of a\/b \(.*GB\) is paused\. Resume .*weir models pull b$/)
    const arriving = withoutUsableEngine(model(), deployment({}), { ...files, isArriving: true })
    assert.deepEqual(seen(arriving), ['downloading', 'model_not_configured', 'model', true])
  })
})
