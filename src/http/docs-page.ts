import type { TObject, TSchema } from 'typebox'
import { errorTable } from '../core/errors.ts'
import { escapeHtml } from '../core/html.ts'
import { describeSchema } from '../core/json/schema-check.ts'
import { documentedRoutes, type ApiDescription, type DocumentedRoute } from './openapi.ts'
import type { Route } from './route.ts'

/** An API on one readable page, made from its routes. It has no scripts and loads nothing. */
export function docsPage(api: ApiDescription, routes: readonly Route[]): string {
  const documented = documentedRoutes(api, routes)
  const navigation = documented.map(
    ({ method, path, operation }) => `<a href="#${operation.id}"><b>${method}</b> ${breakable(path)}</a>`,
  )
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(api.title)} API</title><style>${STYLE}</style></head><body>
<nav><h1>${escapeHtml(api.title)}</h1>${navigation.join('')}<a href="#errors">Errors</a><a href="${api.documentPath}">openapi.json</a></nav>
<main>
${api.introduction}
${documented.map(section).join('\n')}
${errorSection()}
</main></body></html>`
}

function section({ method, path, operation }: DocumentedRoute): string {
  const { id, summary, description, parameters = {}, query, request, response, errors } = operation
  const inPath = Object.entries(parameters).map(([name, text]): Row => [name, 'required', text])
  return `<section id="${id}"><h2><b>${method}</b> ${escapeHtml(path)}</h2>
<p><strong>${escapeHtml(summary)}.</strong> ${escapeHtml(description)}</p>
${inPath.length > 0 || query ? table('Parameters', [...inPath, ...(query ? fieldsOf(query, requiredOnes) : [])]) : ''}
${request ? table(`Request: ${request.contentType}`, fieldsOf(request.schema, requiredOnes)) : ''}
${Object.entries(response.content)
  .map(([type, schema]) => table(`Response ${response.status}: ${type}`, fieldsOf(schema, optionalOnes)))
  .join('\n')}
${errors.length > 0 ? `<h3>Errors</h3><p>${errors.map(code).join(', ')}</p>` : ''}</section>`
}

function errorSection(): string {
  const rows = Object.entries(errorTable).map(
    ([name, { status, retryAfter }]) =>
      `<tr><td><code>${name}</code></td><td>${status}</td><td>${retryText(retryAfter)}</td></tr>`,
  )
  return `<section id="errors"><h2>Errors</h2>
<p>The body is always <code>{"error": {"message", "type", "param", "code"}}</code>. If a response has <code>Retry-After</code>, wait that long and add some jitter.</p>
<table><tr><th>Code</th><th>Status</th><th>Retry-After</th></tr>
${rows.join('\n')}
</table></section>`
}

type Row = readonly [name: string, remark: string, meaning: string]

/** A caller must know what it has to send, and what it cannot rely on getting. */
const requiredOnes = (isRequired: boolean): string => (isRequired ? 'required' : '')
const optionalOnes = (isRequired: boolean): string => (isRequired ? '' : 'optional')

/** How many levels of nested fields are listed. */
const DEPTH = 3

type Described = TSchema & {
  readonly description?: string
  readonly anyOf?: readonly TSchema[]
  readonly items?: TSchema
}

/** The fields of an object with those inside it, as `data[].id`. */
function fieldsOf(
  schema: TSchema,
  remark: (isRequired: boolean) => string,
  prefix = '',
  depth = DEPTH,
): readonly Row[] {
  const object = objectIn(schema)
  if (!object || depth === 0) return []
  return Object.entries<Described>(object.properties).flatMap(([name, property]): readonly Row[] => {
    const place = prefix + name
    const isRequired = object.required?.includes(name) ?? false
    const inside = itemsOf(property)
    const step = inside === property ? '.' : '[].'
    return [
      [place, remark(isRequired), property.description ?? describeSchema(property)],
      ...fieldsOf(inside, remark, place + step, depth - 1),
    ]
  })
}

/** The object that a schema describes, alone or beside null. */
function objectIn(schema: Described): TObject | undefined {
  if ('properties' in schema) return schema as TObject
  const options = schema.anyOf?.flatMap((option) => objectIn(option) ?? []) ?? []
  return options.length === 1 ? options[0] : undefined
}

function itemsOf(schema: Described): TSchema {
  return schema.items ?? schema
}

function table(heading: string, rows: readonly Row[]): string {
  const body = rows.map(
    ([name, remark, text]) => `<tr><td>${code(name)}</td><td>${remark}</td><td>${escapeHtml(text)}</td></tr>`,
  )
  const content =
    body.length === 0 ? '' : `<table><tr><th>Field</th><th></th><th>Meaning</th></tr>${body.join('')}</table>`
  return `<h3>${escapeHtml(heading)}</h3>${content}`
}

function code(text: string): string {
  return `<code>${escapeHtml(text)}</code>`
}

/** A path that breaks between its segments. */
function breakable(path: string): string {
  return escapeHtml(path).replaceAll('/', '<wbr>/')
}

function retryText(retryAfter: number | 'computed' | null): string {
  if (retryAfter === null) return ''
  return retryAfter === 'computed' ? 'depends' : `${retryAfter} s`
}

const STYLE = `
:root { color-scheme: light dark; --ink: light-dark(#16202a, #e6edf3); --soft: light-dark(#5b6b7a, #93a4b4);
  --line: light-dark(#dde3e9, #2b3640); --ground: light-dark(#fff, #11171d); --wash: light-dark(#f5f7f9, #171f27); --mark: light-dark(#0b6bcb, #6cb2ff) }
* { box-sizing: border-box } body { margin: 0; display: flex; color: var(--ink); background: var(--ground); font: 15px/1.55 system-ui, sans-serif }
nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; width: 300px; padding: 24px; border-right: 1px solid var(--line); background: var(--wash); flex: none }
nav h1 { margin: 0 0 16px; font-size: 20px } nav a { display: block; padding: 4px 0; color: inherit; text-decoration: none; font-size: 14px }
nav a:hover { color: var(--mark) } b { color: var(--mark); text-transform: uppercase; font-size: .78em; margin-right: 4px }
main { max-width: 900px; padding: 24px 40px; min-width: 0 } section { margin-bottom: 48px } h2 { font-size: 20px; border-bottom: 1px solid var(--line); padding-bottom: 6px; overflow-wrap: anywhere }
h3 { font-size: 14px; color: var(--soft); margin: 20px 0 6px } table { border-collapse: collapse; table-layout: fixed; width: 100%; font-size: 14px } th:first-child { width: 40% } th:nth-child(2) { width: 76px }
td, th { text-align: left; padding: 5px 12px 5px 0; border-bottom: 1px solid var(--line); vertical-align: top } th { color: var(--soft); font-weight: 500 }
td { overflow-wrap: break-word } td:nth-child(2) { color: var(--soft); font-size: 13px; white-space: nowrap } code, pre { font: 13px/1.5 ui-monospace, monospace } pre { padding: 14px; background: var(--wash); border: 1px solid var(--line); border-radius: 8px; overflow-x: auto }
@media (max-width: 760px) { body { display: block } nav { position: static; width: auto; height: auto; border-right: 0 } main { padding: 16px 24px } }
`
