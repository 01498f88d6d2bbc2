import assert from 'node:assert/strict'
import { Errors } from 'typebox/schema'
import { findSchemaProblem } from '../../src/shared/json/schema-check.ts'
import type { AdminRouteParts } from '../../src/server/api/admin-routes.ts'
import { adminRoutes } from '../../src/server/api/admin-routes.ts'
import { openApiDocument } from '../../src/server/openapi.ts'
import { publicDescription } from '../../src/server/api/public-description.ts'
import { publicRoutes, type PublicRouteParts } from '../../src/server/api/public-routes.ts'
import type { Route } from '../../src/server/route.ts'

/** The published OpenAPI documents, and what tests ask of them. */

export interface DocumentSchema {
  readonly type?: string
  readonly $ref?: string
  readonly properties?: Readonly<Record<string, DocumentSchema>>
  readonly required?: readonly string[]
  readonly items?: DocumentSchema
  readonly anyOf?: readonly DocumentSchema[]
  readonly additionalProperties?: boolean | DocumentSchema
}

export interface Media {
  readonly content: Readonly<Record<string, { readonly schema: DocumentSchema; readonly example?: unknown }>>
}

export interface DocumentedResponse extends Media {
  readonly description: string
  readonly headers: Readonly<Record<string, { readonly description: string; readonly schema: DocumentSchema }>>
}

export interface DocumentedParameter {
  readonly name: string
  readonly in: string
  readonly required: boolean
  readonly description: string
  readonly example?: unknown
  readonly schema: DocumentSchema
}

export interface DocumentedOperation {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly security?: readonly object[]
  readonly parameters?: readonly DocumentedParameter[]
  readonly requestBody?: Media & { readonly required: boolean }
  readonly responses: Readonly<Record<string, DocumentedResponse>>
}

export interface ApiDocument {
  readonly openapi: string
  readonly info: { readonly title: string; readonly version: string }
  readonly servers: readonly { readonly url: string }[]
  readonly security: readonly Readonly<Record<string, readonly string[]>>[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentedOperation>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, DocumentSchema>>
    readonly securitySchemes: object
  }
}

// The routes are only listed, never called, so any parts will do.
const anything: object = new Proxy({}, { get: () => anything })

export function everyPublicRoute(): readonly Route[] {
  return publicRoutes(anything as PublicRouteParts)
}

export function everyAdminRoute(): readonly Route[] {
  return adminRoutes(anything as AdminRouteParts)
}

/** The public document, without starting a service. */
export function publicDocument(): ApiDocument {
  return JSON.parse(JSON.stringify(openApiDocument(publicDescription, everyPublicRoute()))) as ApiDocument
}

/** Every operation as [method, path, operation]. */
export function operationsOf(document: ApiDocument): [string, string, DocumentedOperation][] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]): [string, string, DocumentedOperation] => [method, path, operation]),
  )
}

export function resolved(document: ApiDocument, schema: DocumentSchema): DocumentSchema {
  if (schema.$ref === undefined) return schema
  const name = schema.$ref.replace('#/components/schemas/', '')
  return document.components.schemas[name] ?? assert.fail(`${schema.$ref} leads nowhere`)
}

/** Every schema anywhere in the document, with those inside it. */
function schemasOf(document: ApiDocument): DocumentSchema[] {
  const found = Object.values(document.components.schemas)
  for (const [, , { requestBody, responses, parameters }] of operationsOf(document)) {
    const answers = Object.values(responses)
    const media = [requestBody, ...answers].flatMap((it) => Object.values(it?.content ?? {}))
    const headers = answers.flatMap((answer) => Object.values(answer.headers))
    for (const { schema } of [...media, ...headers, ...(parameters ?? [])]) found.push(schema)
  }
  // Schemas that are added on the way are looked into as well.
  for (const { properties, anyOf, items, additionalProperties: more } of found) {
    found.push(...Object.values(properties ?? {}), ...(anyOf ?? []))
    if (items) found.push(items)
    if (typeof more === 'object') found.push(more)
  }
  return found
}

/** What holds for the document of either API. */
export function assertWellFormed(document: ApiDocument): void {
  assert.equal(document.openapi, '3.1.0')
  assert.ok(document.info.title && document.info.version)
  for (const need of document.security) {
    for (const name of Object.keys(need)) assert.ok(name in document.components.securitySchemes, name)
  }
  const ids = operationsOf(document).map(([, , { operationId }]) => operationId)
  assert.equal(new Set(ids).size, ids.length, 'an operationId is there twice')
  for (const [, path, operation] of operationsOf(document)) {
    assert.ok(path.startsWith('/'), path)
    assert.match(operation.operationId, /^[a-zA-Z]+$/)
    assert.ok(operation.summary && operation.description, path)
    const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1])
    const declared = (operation.parameters ?? []).filter((it) => it.in === 'path')
    assert.deepEqual(
      declared.map(({ name, required }) => [name, required]),
      inPath.map((name) => [name, true]),
      path,
    )
    for (const parameter of operation.parameters ?? []) {
      assert.ok(['query', 'path'].includes(parameter.in) && parameter.description && parameter.schema, path)
    }
    assert.ok(operation.responses['200'] ?? operation.responses['201'], path)
    for (const [status, answer] of Object.entries(operation.responses)) {
      assert.match(status, /^[2-5]\d\d$/)
      assert.ok(answer.description, `${path} ${status}`)
      assert.ok(answer.headers['X-Request-Id'], `${path} ${status}`)
    }
  }
}

const schemaKeywords = new Set(
  `type const enum anyOf $ref format description properties required additionalProperties maxProperties propertyNames items minItems maxItems
  minLength maxLength pattern minimum maximum exclusiveMinimum`.split(/\s+/),
)

/** The schemas are plain JSON Schema, with nothing of the library that made them. */
export function assertPlainSchemas(document: ApiDocument): void {
  const types = new Set(['string', 'number', 'integer', 'boolean', 'array', 'object', 'null', undefined])
  const schemas = schemasOf(document)
  assert.ok(schemas.length > 100)
  for (const schema of schemas) {
    assert.ok(types.has(schema.type), schema.type)
    for (const name of schema.required ?? []) assert.ok(schema.properties?.[name], name)
    for (const key of Object.keys(schema)) assert.ok(schemaKeywords.has(key), key)
    if (schema.$ref !== undefined) resolved(document, schema)
  }
}

/** What a value has that its schema does not mention. */
export function undocumented(schema: DocumentSchema, value: unknown, path = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => undocumented(schema.items ?? {}, item, `${path}[]`))
  if (typeof value !== 'object' || value === null) return []
  const meant = schema.anyOf?.find((option) => option.properties) ?? schema
  return Object.entries(value).flatMap(([name, item]) => {
    const property = meant.properties?.[name] ?? meant.additionalProperties
    return typeof property === 'object' ? undocumented(property, item, `${path}.${name}`) : [`${path}.${name}`]
  })
}

/** Every request and every answer has an example that fits its schema and has no other fields. */
export function assertExamples(document: ApiDocument, routes: readonly Route[]): void {
  for (const [method, path, { requestBody, responses, parameters }] of operationsOf(document)) {
    for (const media of [requestBody, ...Object.values(responses)]) {
      for (const [type, { schema, example }] of Object.entries(media?.content ?? {})) {
        const what = `${method} ${path} ${type}`
        assert.notEqual(example, undefined, what)
        const meant = resolved(document, schema)
        assert.deepEqual(Errors(meant, example), [true, []], what)
        assert.deepEqual(undocumented(meant, example), [], what)
      }
    }
    for (const { in: place, required, example, name } of parameters ?? []) {
      if (place === 'path' || required) assert.ok(example, `${method} ${path} ${name}`)
    }
  }
  // The service checks requests with rules of its own.
  for (const { path, operation } of routes) {
    const { request } = operation ?? {}
    if (request) assert.equal(findSchemaProblem(request.schema, request.example), undefined, path)
  }
}

/** The page names every path and field of the document, and needs nothing from elsewhere. */
export function assertDocsPage(page: string, document: ApiDocument, codes: readonly string[]): void {
  for (const [method, path, { parameters, requestBody }] of operationsOf(document)) {
    assert.ok(page.includes(`<b>${method.toUpperCase()}</b> ${path}`), path)
    const fields = Object.values(requestBody?.content ?? {})[0]?.schema.properties ?? {}
    for (const name of [...Object.keys(fields), ...(parameters ?? []).map((it) => it.name)]) {
      assert.ok(page.includes(`<code>${name}</code>`), `${path} ${name}`)
    }
  }
  for (const code of codes) assert.ok(page.includes(`<code>${code}</code>`), code)
  assert.doesNotMatch(page, /<style|<iframe|@import|url\(|style=|\son\w+=|undefined|\[object/)
  const noScript = page.replaceAll(
    /<script src="\/(docs\/docs\.js\?v=\w+" defer|theme\/scheme\.js\?v=\w+")><\/script>/g,
    '',
  )
  assert.doesNotMatch(noScript, /<script/, 'no script of its own')
  const loaded = [...page.matchAll(/(?:src|<link[^>]* href)="([^"]+)"/g)].map((match) => match[1])
  for (const address of loaded)
    assert.match(address ?? '', /^\/docs\/docs\.(css|js)\?v=\w+$|^\/theme\/(scheme\.js|mark\.svg)(\?v=\w+)?$/)
  assert.doesNotMatch(page, /class="origin">[^<]+<\/span>[^"\s]*\{/, 'code samples name every parameter of the path')
  const ids = [...page.matchAll(/ id="([^"]+)"/g)].map((match) => match[1])
  assert.equal(new Set(ids).size, ids.length, 'an id is there twice')
  for (const [, , { operationId, requestBody }] of operationsOf(document)) {
    const places = [operationId, `${operationId}.code`, ...(requestBody ? [`${operationId}.request`] : [])]
    for (const place of places) assert.ok(page.includes(`<a class="anchor" href="#${place}"`), place)
  }
  const anchors = [...page.matchAll(/href="#([^"]+)"/g)].map((match) => match[1])
  assert.ok(anchors.length > operationsOf(document).length)
  for (const anchor of anchors) assert.ok(page.includes(`id="${anchor}"`), anchor)
}

/** The page as a browser gets it: its headers, what it loads, and the address that it shows. */
export async function assertServedDocs(url: string): Promise<void> {
  const response = await fetch(`${url}/docs`, { headers: { 'x-forwarded-proto': 'https' } })
  const policy = response.headers.get('content-security-policy') ?? ''
  assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';/)
  assert.doesNotMatch(policy, /unsafe|\*|http/)
  assert.equal(response.headers.get('cache-control'), 'private, no-cache')
  const page = await response.text()
  assert.ok(page.includes(`<span class="origin">${url.replace('http:', 'https:')}</span>`))
  for (const [, address = '', name] of page.matchAll(/"(\/docs\/(docs\.\w+)\?v=\w+)"/g)) {
    const loaded = await fetch(url + address)
    assert.equal(loaded.status, 200)
    assert.match(loaded.headers.get('content-type') ?? '', name === 'docs.js' ? /^text\/javascript/ : /^text\/css/)
    assert.match(loaded.headers.get('cache-control') ?? '', /immutable/)
    const other = await fetch(`${url}/docs/${name}?v=another`)
    assert.equal(other.headers.get('cache-control'), 'no-cache', 'of another version')
    assert.equal(await other.text(), await loaded.text())
  }
}
