import { errorTable } from '../../core/errors.ts'
import { describeSchema } from '../../core/json/schema-check.ts'
import { operations, type Operation } from './openapi.ts'

/** The API on one readable page, made from the same schemas, without scripts or anything fetched. */
export function docsPage(): string {
  const navigation = operations.map((it) => `<a href="#${anchor(it)}"><b>${it.method}</b> ${it.path}</a>`).join('')
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Weir API</title><style>${STYLE}</style></head><body>
<nav><h1>Weir</h1>${navigation}<a href="#errors">Errors</a><a href="/api/v1/openapi.json">openapi.json</a></nav>
<main>
<section><h2>Calling the API</h2>
<p>The base address is <code>/api/v1</code>. Every request carries <code>Authorization: Bearer &lt;API_KEY&gt;</code>. Any SDK for the chat completions format works unchanged: give it this base address and your key.</p>
<pre>curl http://127.0.0.1:8080/api/v1/chat/completions \\
  -H "Authorization: Bearer $WEIR_API_KEY" -H "Content-Type: application/json" \\
  -d '{"model": "provider/model", "messages": [{"role": "user", "content": "Hello"}], "stream": true}'</pre>
<p>Every response carries <code>X-RateLimit-Limit</code>, <code>X-RateLimit-Remaining</code>, <code>X-RateLimit-Reset</code> and <code>X-Request-Id</code>. A busy model holds a request in a queue, first in first out, with the connection open and silent: give clients and proxies timeouts well above the model's maximum wait.</p>
</section>
${operations.map(section).join('\n')}
<section id="errors"><h2>Errors</h2>
<p>Always <code>{"error": {"message", "type", "param", "code"}}</code>. Honour <code>Retry-After</code> where it is given, with jitter.</p>
<table><tr><th>Code</th><th>Status</th><th>Retry-After</th></tr>
${Object.entries(errorTable)
  .map(
    ([code, it]) => `<tr><td><code>${code}</code></td><td>${it.status}</td><td>${retryText(it.retryAfter)}</td></tr>`,
  )
  .join('\n')}
</table></section>
</main></body></html>`
}

function section(operation: Operation): string {
  return `<section id="${anchor(operation)}"><h2><b>${operation.method}</b> ${operation.path}</h2>
<p>${escape(operation.description)}</p>
${operation.parameters ? table(operation.parameters.map(({ name, required, description }) => [name, required === true, description])) : ''}
${operation.request ? `<h3>Request</h3>${fields(operation.request)}` : ''}
<h3>Response</h3>${fields(operation.response)}</section>`
}

interface ObjectSchema {
  readonly properties?: Record<string, { description?: string }>
  readonly required?: readonly string[]
}

function fields(schema: ObjectSchema): string {
  const rows = Object.entries(schema.properties ?? {}).map(([name, property]): [string, boolean, string] => [
    name,
    schema.required?.includes(name) ?? false,
    property.description ?? describeSchema(property),
  ])
  return table(rows)
}

function table(rows: readonly (readonly [string, boolean, string])[]): string {
  const body = rows.map(
    ([name, required, text]) =>
      `<tr><td><code>${escape(name)}</code></td><td>${required ? 'required' : ''}</td><td>${escape(text)}</td></tr>`,
  )
  return `<table><tr><th>Field</th><th></th><th>Meaning</th></tr>${body.join('')}</table>`
}

function anchor(operation: Operation): string {
  return operation.path.slice(1).replaceAll('/', '-')
}

function retryText(retryAfter: number | 'computed' | null): string {
  return retryAfter === null ? '' : retryAfter === 'computed' ? 'seconds left' : `${retryAfter} s`
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

const STYLE = `
:root { color-scheme: light dark; --ink: light-dark(#16202a, #e6edf3); --soft: light-dark(#5b6b7a, #93a4b4);
  --line: light-dark(#dde3e9, #2b3640); --ground: light-dark(#fff, #11171d); --wash: light-dark(#f5f7f9, #171f27); --mark: light-dark(#0b6bcb, #6cb2ff) }
* { box-sizing: border-box } body { margin: 0; display: flex; color: var(--ink); background: var(--ground); font: 15px/1.55 system-ui, sans-serif }
nav { position: sticky; top: 0; height: 100vh; width: 250px; padding: 24px; border-right: 1px solid var(--line); background: var(--wash); flex: none }
nav h1 { margin: 0 0 16px; font-size: 20px } nav a { display: block; padding: 4px 0; color: inherit; text-decoration: none; font-size: 14px }
nav a:hover { color: var(--mark) } b { color: var(--mark); text-transform: uppercase; font-size: .78em; margin-right: 4px }
main { max-width: 860px; padding: 24px 40px; min-width: 0 } section { margin-bottom: 48px } h2 { font-size: 20px; border-bottom: 1px solid var(--line); padding-bottom: 6px }
h3 { font-size: 14px; color: var(--soft); margin: 20px 0 6px } table { border-collapse: collapse; width: 100%; font-size: 14px }
td, th { text-align: left; padding: 5px 12px 5px 0; border-bottom: 1px solid var(--line); vertical-align: top } th { color: var(--soft); font-weight: 500 }
td:nth-child(2) { color: var(--soft); font-size: 13px; white-space: nowrap } code, pre { font: 13px/1.5 ui-monospace, monospace } pre { padding: 14px; background: var(--wash); border: 1px solid var(--line); border-radius: 8px; overflow-x: auto }
@media (max-width: 760px) { body { display: block } nav { position: static; width: auto; height: auto; border-right: 0 } main { padding: 16px 24px } }
`
