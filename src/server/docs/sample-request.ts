import type { ApiDescription, DocumentedRoute, QueryField } from '../openapi.ts'
import type { Operation } from '../route.ts'
import type { SampleBody, SampleRequest } from './code-samples.ts'

/** The request of an operation's examples. */
export function sampleRequest(
  { base, credentials }: ApiDescription,
  { method, path, isOpen, operation }: DocumentedRoute,
  origin: string,
): SampleRequest {
  const [answerType = ''] = Object.keys(operation.response.content)
  const body = bodyOf(operation)
  return {
    method,
    url: origin + base + filledPath(path, operation) + queryText(operation),
    variable: isOpen ? undefined : credentials.variable,
    ...(body ? { body } : {}),
    answersJson: answerType === 'application/json',
  }
}

function filledPath(path: string, { parameters = {} }: Operation): string {
  return Object.entries(parameters).reduce(
    (filled, [name, { example }]) => filled.replace(`{${name}}`, example.split('/').map(encodeURIComponent).join('/')),
    path,
  )
}

/** What the operation requires in its query. */
function queryText({ query }: Operation): string {
  const fields = Object.entries<QueryField>(query?.properties ?? {})
  const needed = fields.flatMap(([name, { example }]): [string, string][] =>
    example === undefined ? [] : [[name, example]],
  )
  return needed.length === 0 ? '' : `?${new URLSearchParams(needed).toString()}`
}

function bodyOf({ request }: Operation): SampleBody | undefined {
  if (!request) return undefined
  if (request.contentType !== 'multipart/form-data') return { kind: 'json', value: request.example }
  const { file, ...fields } = request.example as Readonly<Record<string, string>>
  return { kind: 'form', file: ['file', file ?? ''], fields: Object.entries(fields) }
}
