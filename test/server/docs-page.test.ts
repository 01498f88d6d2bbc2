import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { Type } from 'typebox'
import { docsPage } from '../../src/server/docs/docs-page.ts'
import { documentationRoutes } from '../../src/server/docs/documentation.ts'
import { originOf } from '../../src/server/docs/origin.ts'
import type { ApiDescription } from '../../src/server/openapi.ts'
import type { Operation, Route } from '../../src/server/route.ts'
import { ask } from '../support/route-answer.ts'

const api: ApiDescription = {
  title: '<b>title</b>',
  description: '',
  base: '',
  documentPath: '/openapi.json',
  credentials: { name: 'key', description: '', label: 'API key', variable: 'KEY' },
  headers: {},
  errors: [],
  introduction: '',
}

const assets = { style: '/docs/docs.css?v=1', script: '/docs/docs.js?v=1' }
const origin = 'http://weir.test:8080'

function pageOf(path: string, changes: Partial<Operation>, access: Route['access'] = 'key'): string {
  const response = { status: 200 as const, content: { 'application/json': { schema: Type.Object({}), example: {} } } }
  const operation = { id: 'x', summary: 'X', description: 'X', response, errors: [], ...changes }
  return docsPage(api, [{ method: 'POST', path, access, operation }], assets)(origin)
}

describe('the docs page', () => {
  it('may be cached only by its reader, and its files for good only under their version', async () => {
    const routes = documentationRoutes(api, [])
    const keptFor = async (path: string): Promise<unknown> =>
      (await ask(routes, `GET ${path}`)).headers['Cache-Control']
    assert.equal(await keptFor('/docs'), 'private, no-cache')
    const { text } = await ask(routes, 'GET /docs')
    const style = /"(\/docs\/docs\.css\?v=\w+)"/.exec(text)?.[1] ?? assert.fail('no style')
    assert.equal(await keptFor(style), 'public, max-age=31536000, immutable')
    for (const other of [`${style}0`, '/docs/docs.css']) assert.equal(await keptFor(other), 'no-cache', other)
  })

  it('shows the descriptions of routes as text, never as HTML', () => {
    const evil = '<script>alert("&")</script>'
    const fields = Type.Object({ [evil]: Type.String({ description: evil, example: evil }) })
    const content = { schema: fields, example: { [evil]: evil } }
    const page = pageOf(`/x/${evil}/{id}`, {
      id: 'x',
      summary: evil,
      description: evil,
      parameters: { id: { description: evil, example: evil } },
      query: fields,
      request: { contentType: evil, ...content },
      response: { status: 200, content: { [evil]: content, 'text/plain': { schema: Type.String(), example: evil } } },
    })
    assert.ok(page.includes('&#60;script&#62;'))
    const scripts = [...page.matchAll(/<script([^>]*)>/g)].map((match) => match[1]?.replace(/\?v=\w{16}/, ''))
    assert.deepEqual(scripts, [' src="/theme/scheme.js"', ` src="${assets.script}" defer`])
    assert.doesNotMatch(page, /<b>title|"&"/)
  })

  it('shows the origin as text', () => {
    const render = docsPage(api, [], assets)
    assert.ok(render('http://<script>').includes('<span class="origin">http://&#60;script&#62;</span>'))
  })

  it('lists nested fields, also those in arrays and in each alternative of a union', () => {
    const part = (type: string, field: string) => Type.Object({ type: Type.Literal(type), [field]: Type.String() })
    const schema = Type.Object({
      content: Type.Union([Type.String(), Type.Array(Type.Union([part('text', 'text'), part('image', 'url')]))]),
      outer: Type.Object({ middle: Type.Optional(Type.Object({ inner: Type.Integer({ minimum: 1 }) })) }),
    })
    const whole = pageOf('/x', { request: { contentType: 'application/json', schema, example: {} } })
    const page = whole.slice(0, whole.indexOf('<section id="errors">'))
    const names = [...page.matchAll(/<dt><code>([^<]+)<\/code>/g)].map((match) => match[1])
    assert.deepEqual(names, [
      'content',
      'content[].type',
      'content[].text',
      'content[].url',
      'outer',
      'outer.middle',
      'outer.middle.inner',
    ])
    const depths = [...page.matchAll(/<div id="x\.request\.[^"]+" class="depth-(-?\d)"><dt>/g)].map((match) =>
      Number(match[1]),
    )
    assert.deepEqual(depths, [0, 1, 1, 1, 0, 1, 2])
    assert.ok(page.includes('An integer of at least 1.'))
    assert.match(page, /content\[\].type<\/code> <em>required/)
    assert.doesNotMatch(page, /content\[\].text<\/code> <em>required/, 'one alternative needs it, not both')
    assert.ok(page.includes('&#34;text&#34;, or &#34;image&#34;'), 'the type of a field in both alternatives')
  })

  it('fills the address, the parameters and the example into the code samples', () => {
    const page = pageOf('/models/{slug}', {
      parameters: { slug: { description: 'Which.', example: 'meta/x y' } },
      query: Type.Object({ day: Type.String({ example: '1&2' }), other: Type.Optional(Type.String()) }),
      request: { contentType: 'application/json', schema: Type.Object({}), example: { text: "it's" } },
    })
    const url = `<span class="origin">${origin}</span>/models/meta/x%20y?day=1%262`
    assert.equal(page.split(url).length - 1, 3, 'in each language')
  })

  it('says which fields an answer may lack, and which errors there are', () => {
    const schema = Type.Object({ kept: Type.String(), left: Type.Optional(Type.String()) })
    const page = pageOf('/x', {
      response: { status: 200, content: { 'application/json': { schema, example: { kept: '' } } } },
      errors: ['not_found', 'conflict'],
    })
    assert.match(page, /<code>left<\/code> <em>optional/)
    assert.doesNotMatch(page, /<code>kept<\/code> <em>/)
    const errors = /<h3 id="x\.errors">.*?<\/p>/s.exec(page)?.[0] ?? ''
    assert.deepEqual(
      [...errors.matchAll(/<code>(\w+)<\/code>/g)].map((it) => it[1]),
      ['not_found', 'conflict'],
    )
    assert.doesNotMatch(pageOf('/x', {}), /id="x\.errors"/)
  })

  it('has an input for each field of a form, and a list where only some values are possible', () => {
    const page = pageOf('/x', {
      query: Type.Object({ order: Type.Enum(['asc', 'desc']) }),
      request: {
        contentType: 'multipart/form-data',
        schema: Type.Object({ file: Type.String({ format: 'binary' }), purpose: Type.String() }),
        example: { file: '@a.jsonl', purpose: 'batch' },
      },
    })
    const form = /<form.*?<\/form>/s.exec(page)?.[0] ?? ''
    assert.deepEqual(
      ['<input type="file" name="form:file">', 'name="form:purpose" value="batch"', 'name="query:order"'].map((it) =>
        form.includes(it),
      ),
      [true, true, true],
    )
    assert.ok(form.includes('<option></option><option>asc</option><option>desc</option>'))
    assert.doesNotMatch(form, /textarea/)
  })

  it('has a form for the key unless none is needed, and shows no form without the script', () => {
    assert.match(
      pageOf('/x', {}),
      /<details class="try" hidden>.*<input type="password" name="key" autocomplete="off"/s,
    )
    assert.doesNotMatch(pageOf('/x', {}, 'open'), /type="password"/)
  })
})

describe('the script of the docs page', () => {
  const script = readFileSync(new URL('../../src/server/docs/docs.js', import.meta.url), 'utf8')

  it('keeps the key in memory, and sends it only to its own origin', () => {
    assert.doesNotMatch(script, /localStorage|sessionStorage|indexedDB|cookie =|history\.|location\.\w+ =/)
    assert.deepEqual(script.match(/fetch\(.*/g), ['fetch(...requestOf(form, signal))'])
    assert.match(script, /return \[\s*location\.origin \+ path \+ search,/)
    assert.match(script, /credentials: 'omit'/)
  })

  it('shows answers as text, never as HTML', () => {
    assert.doesNotMatch(script, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function/)
  })
})

describe('the origin of a request', () => {
  it('is taken from Host, and its scheme from the connection', () => {
    const origin = (host: string, isEncrypted: boolean): string => originOf({ headers: { host }, isEncrypted })
    assert.equal(origin('127.0.0.1:8080', false), 'http://127.0.0.1:8080')
    assert.equal(origin('[::1]:8080', false), 'http://[::1]:8080')
    assert.equal(origin('weir.example', true), 'https://weir.example')
  })

  it('is never anything that could be code in a sample', () => {
    for (const host of [
      '',
      'a b',
      'a"b',
      "a'b",
      'a$(b)',
      'a`b',
      'a<b',
      'a/b',
      'a\\b',
      'a\nb',
      'user@host',
      'a:b',
      '[a]b',
    ]) {
      assert.equal(originOf({ headers: { host }, isEncrypted: false }), 'http://localhost', host)
    }
    assert.equal(originOf({ headers: {}, isEncrypted: false }), 'http://localhost')
  })
})
