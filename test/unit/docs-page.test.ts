import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import Type from 'typebox'
import { docsPage } from '../../src/http/docs-page.ts'
import type { ApiDescription } from '../../src/http/openapi.ts'
import type { Route } from '../../src/http/route.ts'

const api: ApiDescription = {
  title: '<b>title</b>',
  description: '',
  base: '',
  documentPath: '/openapi.json',
  credentials: { name: 'key', description: '' },
  headers: {},
  errors: [],
  introduction: '',
}

describe('the docs page', () => {
  it('shows what routes say about themselves as text, never as HTML', () => {
    const evil = '<script>alert("&")</script>'
    const fields = Type.Object({ [evil]: Type.String({ description: evil }) })
    const route: Route = {
      method: 'POST',
      path: `/x/${evil}/{id}`,
      access: 'key',
      operation: {
        id: 'x',
        summary: evil,
        description: evil,
        parameters: { id: evil },
        query: fields,
        request: { contentType: evil, schema: fields },
        response: { status: 200, content: { [evil]: fields } },
        errors: [],
      },
    }
    const page = docsPage(api, [route])
    assert.ok(page.includes('&#60;script&#62;'))
    assert.doesNotMatch(page, /<script|<b>title/)
  })
})
