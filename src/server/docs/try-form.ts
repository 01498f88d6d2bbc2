import type { TObject, TSchema } from 'typebox'
import { escapeHtml } from '../../shared/html.ts'
import type { ApiDescription, DocumentedRoute, QueryField } from '../openapi.ts'
import type { Operation } from '../route.ts'

/**
 * The form to send a request from the page. docs.js shows and sends it: the names of its inputs determine where their
 * values go.
 */
export function tryForm({ base, credentials }: ApiDescription, route: DocumentedRoute): string {
  const { method, path, isOpen, operation } = route
  const { parameters = {}, query, request, response } = operation
  const inputs = [
    ...(isOpen
      ? []
      : [field(credentials.label, '<input type="password" name="key" autocomplete="off" spellcheck="false">')]),
    ...Object.entries(parameters).map(([name, { example }]) => field(name, textInput(`path:${name}`, example))),
    ...Object.entries<QueryField>(query?.properties ?? {}).map(([name, it]) =>
      field(name, choice(`query:${name}`, it) ?? textInput(`query:${name}`, it.example ?? '')),
    ),
    ...(request ? bodyInputs(request) : []),
    ...('text/event-stream' in response.content
      ? ['<label class="check"><input type="checkbox" name="stream" checked> Stream the answer</label>']
      : []),
  ]
  return `<details class="try" hidden><summary>Try it</summary><form autocomplete="off" data-method="${method}" data-path="${escapeHtml(base + path)}">${inputs.join('')}
<p>This sends a real request to this service.</p><p><button type="submit">Send</button> <button type="button" disabled>Stop</button></p><p role="status"></p><pre hidden><code></code></pre></form></details>`
}

function field(label: string, input: string): string {
  return `<label><span>${escapeHtml(label)}</span>${input}</label>`
}

/** A list to choose from, if the field takes only certain values. */
function choice(
  name: string,
  { enum: values }: QueryField & { readonly enum?: readonly string[] },
): string | undefined {
  if (!values) return undefined
  const options = ['', ...values].map((value) => `<option>${escapeHtml(value)}</option>`)
  return `<select name="${escapeHtml(name)}">${options.join('')}</select>`
}

function textInput(name: string, value: string): string {
  return `<input type="text" name="${escapeHtml(name)}" value="${escapeHtml(value)}" spellcheck="false">`
}

type Property = TSchema & { readonly format?: string }

function bodyInputs({ contentType, schema, example }: NonNullable<Operation['request']>): readonly string[] {
  if (contentType !== 'multipart/form-data') {
    const text = JSON.stringify(example, null, 2)
    const rows = Math.min(20, text.split('\n').length)
    return [field('Body', `<textarea name="body" rows="${rows}" spellcheck="false">\n${escapeHtml(text)}</textarea>`)]
  }
  const values = example as Readonly<Record<string, string>>
  return Object.entries<Property>((schema as TObject).properties).map(([name, { format }]) =>
    field(
      name,
      format === 'binary'
        ? `<input type="file" name="${escapeHtml(`form:${name}`)}">`
        : textInput(`form:${name}`, values[name] ?? ''),
    ),
  )
}
