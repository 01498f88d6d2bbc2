import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { adminDescription } from '../../src/server/api/admin-description.ts'
import { openApiDocument, type ApiDescription } from '../../src/server/openapi.ts'
import { consoleDescription } from '../../src/server/api/console-description.ts'
import { publicDescription } from '../../src/server/api/public-description.ts'
import type { Route } from '../../src/server/route.ts'
import {
  assertExamples,
  assertPlainSchemas,
  assertWellFormed,
  everyAdminRoute,
  everyPublicRoute,
  operationsOf,
  type ApiDocument,
  type DocumentSchema,
} from '../support/openapi.ts'

/**
 * What callers rely on: every path, parameter, field, limit and header of the APIs, as test/fixtures/api-shape lists them.
 * Texts and the values of examples are not part of it. WEIR_WRITE_SHAPES=1 writes the lists again after an intended change.
 */
const apis: readonly (readonly [name: string, description: ApiDescription, routes: readonly Route[]])[] = [
  ['public', publicDescription, everyPublicRoute()],
  ['console', consoleDescription, everyPublicRoute()],
  ['operator', adminDescription, everyAdminRoute()],
]

/** The lines of a schema: one for each field, with what it takes. */
function linesOf(schema: DocumentSchema, place: string, isRequired: boolean): string[] {
  const { properties = {}, required = [], items, anyOf = [], additionalProperties: others, ...rules } = schema
  const { description: _text, ...kept } = rules as Record<string, unknown>
  const closed = typeof others === 'boolean' ? { additionalProperties: others } : {}
  return [
    `  ${place}${isRequired ? '' : '?'} ${JSON.stringify({ ...kept, ...closed })}`,
    ...anyOf.flatMap((option, index) => linesOf(option, `${place}|${index}`, true)),
    ...Object.entries(properties).flatMap(([name, it]) => linesOf(it, `${place}.${name}`, required.includes(name))),
    ...(items ? linesOf(items, `${place}[]`, true) : []),
    ...(typeof others === 'object' ? linesOf(others, `${place}.*`, true) : []),
  ]
}

function shapeOf(document: ApiDocument): string {
  const lines = [`servers ${JSON.stringify(document.servers.map(({ url }) => url))}`]
  for (const [method, path, operation] of operationsOf(document)) {
    const { operationId, security, parameters = [], requestBody, responses } = operation
    lines.push('', `${method.toUpperCase()} ${path} ${operationId}${security ? ` ${JSON.stringify(security)}` : ''}`)
    for (const it of parameters) lines.push(...linesOf(it.schema, `${it.in} ${it.name}`, it.required))
    for (const [type, { schema }] of Object.entries(requestBody?.content ?? {})) {
      lines.push(...linesOf(schema, type, requestBody?.required ?? false))
    }
    for (const [status, { headers, content }] of Object.entries(responses)) {
      lines.push(`  ${status} ${Object.keys(headers).join(' ')}`)
      for (const [type, { schema }] of Object.entries(content ?? {})) lines.push(...linesOf(schema, type, true))
    }
  }
  for (const [name, schema] of Object.entries(document.components.schemas)) {
    lines.push('', name, ...linesOf(schema, '', true))
  }
  const schemes = Object.entries(document.components.securitySchemes).map(([name, scheme]) => {
    const { description: _text, ...kept } = scheme as Record<string, unknown>
    return `${name} ${JSON.stringify(kept)}`
  })
  return [...lines, '', ...schemes, ''].join('\n')
}

for (const [name, description, routes] of apis) {
  const document = JSON.parse(JSON.stringify(openApiDocument(description, routes))) as ApiDocument

  describe(`the ${name} API`, () => {
    it('has the published shape', () => {
      const file = new URL(`../fixtures/api-shape/${name}.txt`, import.meta.url)
      const shape = shapeOf(document)
      if (process.env['WEIR_WRITE_SHAPES'] === '1') writeFileSync(file, shape)
      assert.ok(existsSync(file))
      assert.equal(shape, readFileSync(file, 'utf8'))
    })

    it('is described by plain schemas, with valid examples', () => {
      assertWellFormed(document)
      assertPlainSchemas(document)
      assertExamples(document, routes)
    })
  })
}
