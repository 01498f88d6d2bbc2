import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Type } from 'typebox'
import { ApiError } from '../../src/shared/errors.ts'
import { readQuery, routeTable } from '../../src/server/router.ts'
import type { Method, Route } from '../../src/server/route.ts'

function route(method: Method, path: string, access: Route['access'] = 'key'): Route {
  return { method, path, access, operation: undefined }
}

const table = routeTable([
  route('GET', '/', 'open'),
  route('GET', '/docs', 'open'),
  route('GET', '/files/{name+}', 'open'),
  route('GET', '/models'),
  route('GET', '/models/detail'),
  route('GET', '/models/{slug+}'),
  route('GET', '/invoices'),
  route('POST', '/invoices'),
  route('POST', '/invoices/preview'),
  route('GET', '/invoices/{number}'),
  route('PUT', '/workspaces/{workspace}/prices/{model+}'),
  route('DELETE', '/workspaces/{workspace}/prices/{model+}'),
  route('POST', '/usage/{id}/correct'),
  route('GET', '/usage/{id}'),
])

/** The match in one line. */
function found(method: string, path: string): string {
  const match = table.find(method, path)
  if (match.kind === 'wrong_method') return `allowed: ${match.allowed}`
  if (match.kind === 'unknown_path') return 'unknown'
  return [match.route.path, ...Object.entries(match.parameters).map(([name, value]) => `${name}=${value}`)].join(' ')
}

describe('a request finds its route', () => {
  const cases: readonly [request: string, expected: string][] = [
    ['GET /models', '/models'],
    ['GET /models/detail', '/models/detail'],
    ['GET /models/meta/x', '/models/{slug+} slug=meta/x'],
    ['GET /models/meta%2Fx', '/models/{slug+} slug=meta/x'],
    ['GET /models/', '/models/{slug+} slug='],
    ['GET /models/detail/', '/models/{slug+} slug=detail/'],
    ['GET /models/a%20b', '/models/{slug+} slug=a b'],
    // Not percent-encoding, so it stands for itself.
    ['GET /models/%E0%A4%A', '/models/{slug+} slug=%E0%A4%A'],
    ['GET /usage/abc', '/usage/{id} id=abc'],
    ['GET /usage/', '/usage/{id} id='],
    ['POST /usage/a%2Fb/correct', '/usage/{id}/correct id=a/b'],
    ['PUT /workspaces/a b/prices/meta/x', '/workspaces/{workspace}/prices/{model+} workspace=a b model=meta/x'],
    ['DELETE /workspaces/w/prices/x', '/workspaces/{workspace}/prices/{model+} workspace=w model=x'],
    ['GET /invoices/INV-1', '/invoices/{number} number=INV-1'],
    // The literal path has no GET, the pattern has.
    ['GET /invoices/preview', '/invoices/{number} number=preview'],
    ['POST /invoices/preview', '/invoices/preview'],
  ]
  for (const [request, expected] of cases) {
    it(`${request} → ${expected}`, () => {
      const space = request.indexOf(' ')
      assert.equal(found(request.slice(0, space), request.slice(space + 1)), expected)
    })
  }
})

describe('a request without a route', () => {
  it('is answered with the methods of every route at its path, each once, the most literal first', () => {
    assert.equal(found('PUT', '/invoices'), 'allowed: GET, POST')
    assert.equal(found('PUT', '/invoices/preview'), 'allowed: POST, GET')
    assert.equal(found('POST', '/models/detail'), 'allowed: GET')
    assert.equal(found('GET', '/workspaces/w/prices/x'), 'allowed: PUT, DELETE')
  })

  it('is at an unknown path otherwise', () => {
    const paths = [
      '',
      '*',
      'models',
      '/nothing',
      '/models2',
      '/usage',
      '/usage/a/b',
      '/invoices/a/b',
      '/workspaces/w/prices',
    ]
    for (const path of [...paths, '/__proto__', '/constructor', '//models', 'http://x/models']) {
      assert.equal(found('GET', path), 'unknown', path)
    }
  })
})

describe('an open route', () => {
  it('answers HEAD as well as GET, which other routes do not', () => {
    assert.equal(found('HEAD', '/docs'), '/docs')
    assert.equal(found('HEAD', '/files/a/b'), '/files/{name+} name=a/b')
    assert.equal(found('HEAD', '/models'), 'allowed: GET')
    const signIn = routeTable([route('POST', '/sign-in', 'open')])
    assert.equal(signIn.find('HEAD', '/sign-in').kind, 'unknown_path', 'a request that only asks changes nothing')
  })

  it('does not exist for other methods, so that nothing is revealed before authentication', () => {
    assert.equal(found('POST', '/docs'), 'unknown')
    assert.equal(found('DELETE', '/'), 'unknown')
    assert.equal(found('POST', '/files/x'), 'unknown')
  })
})

describe('a query', () => {
  const schema = Type.Object({
    scope: Type.Optional(Type.Enum(['mine', 'all'])),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 10 })),
    slug: Type.String(),
  })
  const refused = (text: string): [string, string | null] => {
    try {
      readQuery(schema, text)
    } catch (error) {
      assert.ok(error instanceof ApiError)
      return [error.code, error.param]
    }
    return assert.fail(`${text} was accepted`)
  }

  it('is read by its schema: numbers become numbers, the first value counts, unknown names are ignored', () => {
    assert.deepEqual(readQuery(schema, 'slug=a%2Fb&limit=5&scope=all&scope=nonsense&more=1'), {
      scope: 'all',
      limit: 5,
      slug: 'a/b',
    })
    assert.deepEqual(readQuery(schema, 'slug='), { slug: '' })
    assert.deepEqual(readQuery(undefined, 'anything=1'), {})
  })

  it('is refused with the name of the parameter, and never for a wrong type: a query is text', () => {
    assert.deepEqual(refused(''), ['missing_required_parameter', 'slug'])
    assert.deepEqual(refused('slug=x&scope=ALL'), ['invalid_value', 'scope'])
    for (const limit of ['0', '11', '1.5', 'many', '']) {
      assert.deepEqual(refused(`slug=x&limit=${limit}`), ['invalid_value', 'limit'], limit)
    }
  })
})
