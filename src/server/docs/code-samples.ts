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

function jsonText(value: unknown): string {
  return JSON.stringify(value, null, 2)
}

/** JSON differs from Python only in three words. */
function pythonLiteral(value: unknown): string {
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
function indented(text: string, by = '    '): string {
  return text.replaceAll('\n', `\n${by}`)
}

/** A request with the SDK of OpenAI. */
export interface SdkRequest {
  /** Such as https://weir.example/api/v1. */
  readonly base: string
  readonly path: string
  /** The environment variable with the key. */
  readonly variable: string
  readonly body: SampleBody
}

interface SdkCall {
  readonly method: string
  /** What the answer is called, and how its result is shown. */
  readonly answer: string
  readonly python: { readonly import?: string; readonly show: string }
  readonly typescript: { readonly import?: string; readonly show: string }
  /** Parameters of ours that the SDK does not know. */
  readonly unknown: readonly string[]
}

const calls: Readonly<Record<string, SdkCall>> = {
  '/chat/completions': {
    method: 'chat.completions.create',
    answer: 'completion',
    python: { show: 'print(completion.choices[0].message.content)' },
    typescript: { show: 'console.log(completion.choices[0]?.message.content)' },
    unknown: ['top_k', 'min_p', 'repetition_penalty'],
  },
  '/embeddings': {
    method: 'embeddings.create',
    answer: 'embeddings',
    python: { show: 'print(embeddings.data[0].embedding)' },
    typescript: { show: 'console.log(embeddings.data[0]?.embedding)' },
    unknown: [],
  },
  '/images/generations': {
    method: 'images.generate',
    answer: 'images',
    python: {
      import: 'import base64',
      show: 'open("image.png", "wb").write(base64.b64decode(images.data[0].b64_json))',
    },
    typescript: {
      import: "import { writeFileSync } from 'node:fs'",
      show: "writeFileSync('image.png', images.data?.[0]?.b64_json ?? '', 'base64')",
    },
    unknown: ['seed'],
  },
  '/audio/transcriptions': {
    method: 'audio.transcriptions.create',
    answer: 'transcription',
    python: { show: 'print(transcription.text)' },
    typescript: { import: "import { createReadStream } from 'node:fs'", show: 'console.log(transcription.text)' },
    unknown: [],
  },
}

/** undefined: the SDK has no such call. */
export function sdkSamples(
  request: SdkRequest,
): { readonly Python: () => string; readonly TypeScript: () => string } | undefined {
  const call = calls[request.path]
  return call && { Python: () => sdkPython(request, call), TypeScript: () => sdkTypescript(request, call) }
}

function sdkPython({ base, variable, body }: SdkRequest, call: SdkCall): string {
  const [known, unknown] = fieldsOf(body, call)
  const given = [
    ...(body.kind === 'form' ? [`${body.file[0]}=open(${JSON.stringify(body.file[1])}, "rb")`] : []),
    ...known.map(([name, value]) => `${name}=${indented(pythonLiteral(value))}`),
    ...(unknown.length === 0 ? [] : [`extra_body=${indented(pythonLiteral(Object.fromEntries(unknown)))}`]),
  ]
  return [
    ...(call.python.import === undefined ? [] : [call.python.import]),
    'import os',
    'from openai import OpenAI',
    '',
    `client = OpenAI(base_url=${JSON.stringify(base)}, api_key=os.environ["${variable}"])`,
    '',
    `${call.answer} = client.${call.method}(`,
    ...given.map((it) => `    ${it},`),
    ')',
    call.python.show,
  ].join('\n')
}

function sdkTypescript({ base, variable, body }: SdkRequest, call: SdkCall): string {
  const [known, unknown] = fieldsOf(body, call)
  const given = [
    ...(body.kind === 'form' ? [`${body.file[0]}: createReadStream(${JSON.stringify(body.file[1])})`] : []),
    ...known.map(([name, value]) => `${name}: ${indented(jsonText(value), '  ')}`),
    // Spread as a plain object, because the types of the SDK do not have them.
    ...(unknown.length === 0 ? [] : [`...(${indented(jsonText(Object.fromEntries(unknown)), '  ')} as object)`]),
  ]
  return [
    ...(call.typescript.import === undefined ? [] : [call.typescript.import]),
    "import OpenAI from 'openai'",
    '',
    `const client = new OpenAI({ baseURL: ${JSON.stringify(base)}, apiKey: process.env.${variable} })`,
    '',
    `const ${call.answer} = await client.${call.method}({`,
    ...given.map((it) => `  ${it},`),
    '})',
    call.typescript.show,
  ].join('\n')
}

type Fields = readonly (readonly [name: string, value: unknown])[]

function fieldsOf(body: SampleBody, { unknown }: SdkCall): readonly [known: Fields, unknown: Fields] {
  const all = body.kind === 'form' ? body.fields : Object.entries(body.value as object)
  return [all.filter(([name]) => !unknown.includes(name)), all.filter(([name]) => unknown.includes(name))]
}
