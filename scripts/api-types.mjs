// TypeScript types of an OpenAPI document of ours: one entry for each operation.

/** A module with the type `Operations` and the table `operations`, for console/shared/client.ts. */
export function apiTypes(document, base) {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path: base + path, method, operation })),
  )
  const types = operations.map(({ operation }) => {
    const { operationId, requestBody } = operation
    const [body] = Object.values(requestBody?.content ?? {})
    const answer = answerOf(operation)
    return `  ${operationId}: {
    path: ${parameterTypes(operation, 'path')}
    query: ${parameterTypes(operation, 'query')}
    body: ${body ? typeOf(body.schema) : 'undefined'}
    answer: ${answer ? typeOf(answer.schema) : 'unknown'}
  }`
  })
  const table = operations.map(
    ({ path, method, operation: { operationId, 'x-roles': roles } }) =>
      `  ${operationId}: ['${method.toUpperCase()}', '${path}'${roles ? `, ${JSON.stringify(roles)}` : ''}],`,
  )
  return `// Written by npm run references from the OpenAPI document.

export interface Operations {
${types.join('\n')}
}

export const operations = {
${table.join('\n')}
} as const satisfies Record<keyof Operations, readonly [method: string, path: string, roles?: readonly string[]]>
`
}

function answerOf({ responses }) {
  const { content } = responses['200'] ?? responses['201']
  return content['application/json']
}

function parameterTypes({ parameters = [] }, place) {
  const fields = parameters
    .filter((it) => it.in === place)
    .map(({ name, required, schema }) => `${name}${required ? '' : '?'}: ${typeOf(schema)}`)
  return fields.length === 0 ? '{}' : `{ ${fields.join('; ')} }`
}

function typeOf(schema) {
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  if (schema.anyOf) return `(${schema.anyOf.map(typeOf).join(' | ')})`
  switch (schema.type) {
    case 'string':
    case 'boolean':
    case 'null':
      return schema.type
    case 'integer':
    case 'number':
      return 'number'
    case 'array':
      return `readonly (${schema.items ? typeOf(schema.items) : 'unknown'})[]`
    case 'object':
      return objectType(schema)
    default:
      return 'unknown'
  }
}

function objectType({ properties = {}, required = [], additionalProperties }) {
  const fields = Object.entries(properties).map(
    ([name, schema]) => `${JSON.stringify(name)}${required.includes(name) ? '' : '?'}: ${typeOf(schema)}`,
  )
  if (fields.length > 0) return `{ ${fields.join('; ')} }`
  return typeof additionalProperties === 'object'
    ? `Record<string, ${typeOf(additionalProperties)}>`
    : 'Record<string, unknown>'
}
