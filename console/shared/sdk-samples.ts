import { indented, jsonText, pythonLiteral, type SampleBody } from '../../src/server/docs/code-samples.ts'

/** Requests with the SDK of OpenAI, ready to paste. */

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
  return call && { Python: () => python(request, call), TypeScript: () => typescript(request, call) }
}

function python({ base, variable, body }: SdkRequest, call: SdkCall): string {
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

function typescript({ base, variable, body }: SdkRequest, call: SdkCall): string {
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
