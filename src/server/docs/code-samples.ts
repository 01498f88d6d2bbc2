/** A request that code samples make. */
export interface SampleRequest {
  readonly method: string
  /** Encoded, and safe inside double quotes. */
  readonly url: string
  /** The environment variable with the bearer credentials; undefined if the request needs none. */
  readonly variable: string | undefined
  readonly body?: SampleBody
  readonly answersJson: boolean
}

export type SampleBody =
  | { readonly kind: 'json'; readonly value: unknown }
  | {
      readonly kind: 'form'
      /** The name of the field that takes a file, and the name of that file. */
      readonly file: readonly [field: string, name: string]
      readonly fields: readonly (readonly [name: string, value: string])[]
    }

/** The same request in each language, ready to paste. */
export const codeSamples = { curl, Python: python, TypeScript: typescript } satisfies Record<
  string,
  (request: SampleRequest) => string
>

function curl({ method, url, variable, body }: SampleRequest): string {
  const usualMethod = body ? 'POST' : 'GET'
  const options = [
    ...(method === usualMethod ? [] : [`-X ${method}`]),
    ...(variable === undefined ? [] : [`-H "Authorization: Bearer $${variable}"`]),
  ]
  if (body?.kind === 'json') {
    options.push('-H "Content-Type: application/json"', `-d ${shellQuoted(JSON.stringify(body.value, null, 2))}`)
  } else if (body) {
    const [field, name] = body.file
    options.push(`-F ${shellQuoted(`${field}=@${name}`)}`)
    for (const [other, value] of body.fields) options.push(`-F ${shellQuoted(`${other}=${value}`)}`)
  }
  return [`curl "${url}"`, ...options].join(' \\\n  ')
}

function python({ method, url, variable, body, answersJson }: SampleRequest): string {
  const given = [JSON.stringify(url)]
  if (variable !== undefined) given.push(`headers={"Authorization": "Bearer " + os.environ["${variable}"]}`)
  if (body?.kind === 'json') given.push(`json=${indented(pythonLiteral(body.value))}`)
  else if (body) {
    const [field, name] = body.file
    given.push(`files={${JSON.stringify(field)}: open(${JSON.stringify(name)}, "rb")}`)
    given.push(`data=${indented(pythonLiteral(Object.fromEntries(body.fields)))}`)
  }
  return [
    ...(variable === undefined ? [] : ['import os']),
    'import requests',
    '',
    `response = requests.${method.toLowerCase()}(`,
    ...given.map((it) => `    ${it},`),
    ')',
    'response.raise_for_status()',
    `print(response.${answersJson ? 'json()' : 'text'})`,
  ].join('\n')
}

function typescript({ method, url, variable, body, answersJson }: SampleRequest): string {
  const headers = [
    ...(variable === undefined ? [] : [`Authorization: \`Bearer \${process.env.${variable}}\``]),
    ...(body?.kind === 'json' ? ["'Content-Type': 'application/json'"] : []),
  ]
  const options = [
    ...(method === 'GET' ? [] : [`method: '${method}'`]),
    ...(headers.length === 0 ? [] : [`headers: { ${headers.join(', ')} }`]),
    ...(body
      ? [body.kind === 'json' ? `body: JSON.stringify(${indented(jsonText(body.value), '  ')})` : 'body: form']
      : []),
  ]
  return [
    ...(body?.kind === 'form' ? formLines(body) : []),
    `const response = await fetch(${JSON.stringify(url)}${options.length === 0 ? ')' : ', {'}`,
    ...options.map((it) => `  ${it},`),
    ...(options.length === 0 ? [] : ['})']),
    `if (!response.ok) throw new Error(await response.text())`,
    `console.log(await response.${answersJson ? 'json' : 'text'}())`,
  ].join('\n')
}

function formLines({ file: [field, name], fields }: Extract<SampleBody, { readonly kind: 'form' }>): readonly string[] {
  return [
    "import { openAsBlob } from 'node:fs'",
    '',
    'const form = new FormData()',
    `form.append(${JSON.stringify(field)}, await openAsBlob(${JSON.stringify(name)}), ${JSON.stringify(name)})`,
    ...fields.map(([other, value]) => `form.append(${JSON.stringify(other)}, ${JSON.stringify(value)})`),
  ]
}

/** One word for a POSIX shell. */
function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}

export function jsonText(value: unknown): string {
  return JSON.stringify(value, null, 2)
}

/** JSON differs from Python only in three words. */
export function pythonLiteral(value: unknown): string {
  if (value === null) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (typeof value !== 'object') return JSON.stringify(value)
  const items = Array.isArray(value)
    ? value.map(pythonLiteral)
    : Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}: ${pythonLiteral(item)}`)
  const [open, close] = Array.isArray(value) ? '[]' : '{}'
  return items.length === 0
    ? `${open}${close}`
    : `${open}\n${items.map((it) => `    ${indented(it)},`).join('\n')}\n${close}`
}

/** All lines but the first moved to the right. */
export function indented(text: string, by = '    '): string {
  return text.replaceAll('\n', `\n${by}`)
}
