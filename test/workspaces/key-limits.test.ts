import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ApiError } from '../../src/shared/errors.ts'
import {
  amountIn,
  checkLimits,
  limitedEndpoints,
  requireModels,
  rulesOf,
  widerThan,
} from '../../src/workspaces/keys/key-limits.ts'
import type { GivenLimits } from '../../src/workspaces/keys/key-store.ts'
import type { KeyLimits, KeyRules } from '../../src/workspaces/workspace.ts'
import { publicRoutes, type PublicRouteParts } from '../../src/server/api/public-routes.ts'
import { noLimits } from '../support/key-limits.ts'

function rules(limits: Partial<KeyLimits>): KeyRules {
  const made = rulesOf({ id: 'key_1', ...noLimits, ...limits })
  assert.ok(made)
  return made
}

/** The parameter that is refused; undefined if all are valid. */
function refused(limits: GivenLimits): string | null | undefined {
  try {
    checkLimits(limits)
    return undefined
  } catch (error) {
    assert.ok(error instanceof ApiError && error.code === 'invalid_value')
    return error.param
  }
}

describe('the rules of a key', () => {
  it('do not exist for a key without limits', () => {
    assert.equal(rulesOf({ id: 'key_1', ...noLimits }), undefined)
  })

  it('restrict only what is limited', () => {
    const model = { id: 'meta/x', aliases: [] }
    const ofRate = rules({ requestsPerMinute: 7 })
    assert.deepEqual(ofRate.rate, { id: 'key_1', limit: 7 })
    assert.deepEqual(
      [ofRate.allowsModel(model), ofRate.allowsEndpoint('/rerank'), ofRate.allowsAddress('1.2.3.4')],
      [true, true, true],
    )
    assert.equal(rules({ allowedModels: ['meta/x'] }).rate, undefined)
    assert.deepEqual(
      [ofRate.tokenRate, rules({ tokensPerMinute: 9 }).tokenRate],
      [undefined, { id: 'key_1', limit: 9 }],
    )
  })

  it('allow a model by its slug or by one of its aliases', () => {
    const { allowsModel } = rules({ allowedModels: ['meta/x', 'short'] })
    assert.equal(allowsModel({ id: 'meta/x', aliases: ['x'] }), true)
    assert.equal(allowsModel({ id: 'meta/y', aliases: ['other', 'short'] }), true)
    assert.equal(allowsModel({ id: 'meta/z', aliases: ['meta/x2'] }), false)
  })

  it('allow the listed endpoints', () => {
    const { allowsEndpoint } = rules({ allowedEndpoints: ['/embeddings'] })
    assert.deepEqual(['/embeddings', '/rerank'].map(allowsEndpoint), [true, false])
  })

  const addresses: readonly [allowed: string, address: string, isAllowed: boolean][] = [
    ['10.0.0.0/8', '10.255.0.1', true],
    ['10.0.0.0/8', '11.0.0.1', false],
    ['203.0.113.7', '203.0.113.7', true],
    ['203.0.113.7', '203.0.113.8', false],
    ['0.0.0.0/0', '203.0.113.8', true],
    ['0.0.0.0/0', '2001:db8::1', false],
    ['2001:db8::/32', '2001:db8:1::9', true],
    ['2001:db8::/32', '2001:db9::9', false],
    ['::1', '::1', true],
    // A socket for both families shows IPv4 addresses in this form.
    ['10.0.0.0/8', '::ffff:10.1.2.3', true],
    ['10.0.0.0/8', '::ffff:11.1.2.3', false],
    // A caller that has left has no address.
    ['0.0.0.0/0', '', false],
    ['fe80::/10', 'fe80::1%eth0', false],
  ]
  for (const [allowed, address, isAllowed] of addresses) {
    it(`${isAllowed ? 'allow' : 'refuse'} "${address}" if ${allowed} is allowed`, () => {
      assert.equal(rules({ allowedAddresses: [allowed] }).allowsAddress(address), isAllowed)
    })
  }
})

describe('limits of a key that are not valid', () => {
  it('are refused by the name of their field', () => {
    for (const rate of [0, -1, 1.5, NaN, 100_000_001]) {
      assert.equal(refused({ requestsPerMinute: rate }), 'requests_per_minute', String(rate))
      assert.equal(refused({ tokensPerMinute: rate }), 'tokens_per_minute', String(rate))
    }
    for (const list of [[], Array.from({ length: 101 }, () => 'x'), [''], [' '], ['x'.repeat(257)]]) {
      assert.equal(refused({ allowedModels: list }), 'allowed_models')
    }
    assert.equal(refused({ allowedModels: ['x'.repeat(256)] }), undefined)
    for (const list of [[], ['/models'], ['/rerank', 'rerank']]) {
      assert.equal(refused({ allowedEndpoints: list }), 'allowed_endpoints')
    }
    const wrong = [
      'x',
      '10.0.0.0/33',
      '10.0.0.0/',
      '10.0.0.0/08',
      '10.0.0.0/8/8',
      '::/129',
      'fe80::1%eth0',
      '10.0.0.0/-1',
    ]
    for (const address of wrong) {
      assert.equal(refused({ allowedAddresses: ['::1', address] }), 'allowed_addresses', address)
    }
    assert.equal(refused({ allowedAddresses: [] }), 'allowed_addresses')
  })

  it('are none of these', () => {
    const most = Array.from({ length: 100 }, (_, index) => `10.0.${index}.0/24`)
    assert.equal(
      refused({ requestsPerMinute: 1, allowedEndpoints: limitedEndpoints, allowedAddresses: most }),
      undefined,
    )
    assert.equal(refused(noLimits), undefined)
    assert.equal(refused({ requestsPerMinute: undefined }), undefined)
  })
})

describe('the endpoints that a key can be limited to', () => {
  it('are those of all inference routes', () => {
    const parts = { limits: {}, audio: {}, files: undefined } as unknown as PublicRouteParts
    const routes = publicRoutes(parts).flatMap((it) => (it.access === 'key' ? [it] : []))
    const found = new Set(routes.flatMap(({ endpoint }) => endpoint ?? []))
    assert.deepEqual([...found].toSorted(), limitedEndpoints.toSorted())
    const unlimited = routes.filter(({ method, endpoint }) => method === 'POST' && endpoint === undefined)
    assert.deepEqual(
      unlimited.map(({ path }) => path),
      ['/api/v1/keys', '/api/v1/files', '/api/v1/batches', '/api/v1/batches/{id}/cancel'],
      'keys need manage_keys, and the lines of a batch are checked one by one',
    )
  })
})

describe('a key that another key manages', () => {
  const whole = { ...noLimits, expiresAt: null, allowedAddresses: ['10.0.0.0/8', '2001:db8::/32'] }
  const wider = (allowedAddresses: readonly string[] | null) => widerThan({ ...whole, allowedAddresses }, whole)

  it('may have the same networks or parts of them, and no others', () => {
    for (const within of [['10.0.0.0/8'], ['10.1.0.0/16', '2001:db8::1'], ['10.255.255.255']]) {
      assert.equal(wider(within), undefined, within.join())
    }
    for (const outside of [null, ['10.0.0.0/7'], ['11.0.0.0'], ['10.0.0.1', '::1'], ['2001:db8::/31']]) {
      assert.equal(wider(outside), 'allowed_addresses', String(outside))
    }
  })

  it('may do less in every other field, and in none more', () => {
    const most = {
      ...noLimits,
      manageKeys: false,
      expiresAt: 9000,
      requestsPerMinute: 60,
      tokensPerMinute: 500,
      spendPerDay: 10n,
      spendPerMonth: 100n,
      allowedModels: ['a/b', 'c/d'],
      allowedEndpoints: ['/chat/completions', '/embeddings'],
    }
    assert.equal(widerThan(most, most), undefined)
    const less = { expiresAt: 8999, requestsPerMinute: 59, tokensPerMinute: 1, spendPerDay: 0n, spendPerMonth: 99n }
    assert.equal(
      widerThan({ ...most, ...less, allowedModels: ['c/d'], allowedEndpoints: ['/embeddings'] }, most),
      undefined,
    )
    assert.equal(widerThan({ ...most, manageKeys: false }, { ...most, manageKeys: true }), undefined)
    for (const [field, ...wider] of [
      ['manage_keys', { manageKeys: true }],
      ['expires_at', { expiresAt: 9001 }, { expiresAt: null }],
      ['requests_per_minute', { requestsPerMinute: 61 }, { requestsPerMinute: null }],
      ['tokens_per_minute', { tokensPerMinute: 501 }, { tokensPerMinute: null }],
      ['spend_per_day', { spendPerDay: 11n }, { spendPerDay: null }],
      ['spend_per_month', { spendPerMonth: 101n }, { spendPerMonth: null }],
      ['allowed_models', { allowedModels: ['a/b', 'e/f'] }, { allowedModels: null }],
      ['allowed_endpoints', { allowedEndpoints: ['/rerank'] }, { allowedEndpoints: null }],
    ] as const) {
      for (const change of wider) assert.equal(widerThan({ ...most, ...change }, most), field)
    }
  })

  it('may be limited to the models that its workspace sees, and to no others', () => {
    const models = [
      { id: 'a/open', aliases: ['open'] },
      { id: 'a/own', aliases: [], visibleTo: ['acme'] },
    ]
    requireModels({ allowedModels: ['open', 'a/own'] }, models, 'acme')
    assert.throws(() => requireModels({ allowedModels: ['a/own'] }, models, 'other'), { param: 'allowed_models' })
  })

  it('may spend at most a million dollars', () => {
    assert.equal(amountIn('spend_limit', '1000000'), 10n ** 18n)
    assert.throws(() => amountIn('spend_limit', '1000000.01'), { code: 'invalid_value', param: 'spend_limit' })
  })
})
