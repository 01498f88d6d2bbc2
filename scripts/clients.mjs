// npm run clients: runs the real SDKs in test/clients against the service and writes the results to docs/clients.md.
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { run } from 'node:test'
import { agentsSection } from './agents.mjs'
import { root, runOnRuntime } from './bootstrap.mjs'

/** The start of a suite's title → the packages of that client, as package.json names them. */
const clients = {
  openai: ['openai'],
  'openai 6': ['openai-6'],
  'openai responses': ['openai'],
  '@anthropic-ai/sdk': ['@anthropic-ai/sdk'],
  ai: ['ai', '@ai-sdk/openai-compatible'],
  'ai 6': ['ai-6', 'openai-compatible-2'],
  langchain: ['@langchain/openai', '@langchain/core'],
  'langchain 0': ['langchain-openai-0', 'langchain-core-0'],
  llamaindex: ['llamaindex', '@llamaindex/openai'],
  '@ai-sdk/cohere': ['@ai-sdk/cohere', 'ai'],
  '@ai-sdk/cohere 3': ['ai-cohere-3', 'ai-6'],
  'cohere-ai': ['cohere-ai'],
  'cohere-ai 7': ['cohere-ai-7'],
  CohereRerank: ['@langchain/cohere'],
  'CohereRerank 0': ['langchain-cohere-0'],
  curl: [],
}

/** The end of a suite's title → the column heading. */
const features = {
  chat: 'Chat',
  streaming: 'Streaming',
  tools: 'Tools',
  'structured output': 'Structured output',
  vision: 'Vision',
  completions: 'Completions',
  embeddings: 'Embeddings',
  rerank: 'Rerank',
  images: 'Images',
  audio: 'Audio',
  models: 'Models',
  errors: 'Errors',
  retries: 'Retries',
  abort: 'Abort',
  'broken stream': 'Broken stream',
}

await runOnRuntime(import.meta.url, main)

async function main() {
  // With the older majors.
  process.env.WEIR_LONG_RUN = '1'
  const folder = join(root, 'test', 'clients')
  const files = readdirSync(folder).filter((file) => file.endsWith('.test.ts'))
  const cells = new Map()
  const failures = []
  const unknown = []
  let passed = 0
  for await (const { type, data } of run({
    files: files.map((file) => join(folder, file)),
    concurrency: 2,
    timeout: 120_000,
    cwd: root,
  })) {
    if (type !== 'test:pass' && type !== 'test:fail') continue
    const isSuite = data.details.type === 'suite'
    if (type === 'test:fail' && data.details.error?.failureType !== 'subtestsFailed') failures.push(data.name)
    if (!isSuite) passed += type === 'test:pass' && data.skip === undefined ? 1 : 0
    const [client, feature] = data.name.split(': ')
    if (!isSuite || feature === undefined || data.skip !== undefined) continue
    if (!(client in clients) || !(feature in features)) unknown.push(data.name)
    // Several files may test the same feature.
    const cell = `${client}: ${feature}`
    cells.set(cell, cells.get(cell) !== '✗' && type === 'test:pass' ? '✓' : '✗')
  }
  if (unknown.length > 0) failures.push(`suites without a row or column in the table: ${unknown.join(', ')}`)
  const file = join(root, 'docs', 'clients.md')
  writeFileSync(file, page(cells))
  spawnSync(join(root, 'node_modules', '.bin', 'oxfmt'), [file], { cwd: root })
  console.log(`docs/clients.md: ${passed} tests passed${failures.length > 0 ? `, ${failures.length} failed` : ''}`)
  for (const failure of failures) console.error(`✖ ${failure}`)
  process.exit(failures.length > 0 ? 1 : 0)
}

function page(cells) {
  const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const rows = Object.entries(clients).map(([client, packages]) => [
    nameOf(client, packages, devDependencies),
    ...Object.keys(features).map((feature) => cells.get(`${client}: ${feature}`) ?? ''),
  ])
  const table = [['Client', ...Object.values(features)], ['---', ...Object.keys(features).map(() => ':-:')], ...rows]
  return `<!-- Written by \`npm run clients\` from the results of test/clients; do not edit. -->

# Clients

These SDKs run unchanged against the real service, over real sockets. They get the base address \`https://<host>/api/v1\`, a
key and a model, and nothing else. ✓ means passed, ✗ failed. An empty cell has no test, mostly because the client has no
call for it.

${table.map((row) => `| ${row.join(' | ')} |`).join('\n')}

- **Errors**: the client raises its own error class with Weir's status and message.
- **Retries**: the client repeats a call that failed or was rate limited, after the pause that \`Retry-After\` asks for.
  LangChain's \`ChatOpenAI\` 0.x ignores the header: it tries again after pauses of its own, starting at 1 s, and
  succeeds once one of them is long enough.
- **Abort**: a caller that leaves frees the engine at once.
- **Broken stream**: if the engine breaks off, the caller gets an error, never a short answer.
- **cohere-ai** adds \`v1/\` to its paths itself, so its \`baseUrl\` is \`https://<host>/api\`. LangChain's \`CohereRerank\`
  takes such a client as \`client\`. Of its calls, Weir serves only \`rerank\`, and only from the v1 client
  (\`CohereClient\`).
- **@ai-sdk/cohere** does more than reranking; use \`@ai-sdk/openai-compatible\` for the rest.
- **LangChain's** 0.x packages are tested with the \`@langchain/core\` of their own major.
- **LlamaIndex** takes no abort signal and does not close a stream when its reader leaves. To abort, pass your own
  \`fetch\` (\`additionalSessionOptions\`).
- **LangChain's** \`DallEAPIWrapper\` always sends \`style\` and \`quality\`, so the model must list them in
  \`supported_parameters\`.
- **openai responses** is the \`responses\` of the openai SDK. **@anthropic-ai/sdk** adds \`/v1\` to its paths itself, so its
  \`baseURL\` is \`https://<host>/api\`.

${agentsSection()}`
}

/** The client's name with the versions that were tested. */
function nameOf(client, packages, pinned) {
  if (packages.length === 0) return client
  const names = packages.map((name) =>
    pinned[name].startsWith('npm:') ? pinned[name].slice(4) : `${name}@${pinned[name]}`,
  )
  const what = client.startsWith('CohereRerank')
    ? ' (LangChain `CohereRerank`)'
    : client === 'openai responses'
      ? ' (`responses`)'
      : ''
  return `${names.map((name) => name.replace(/(.)@/, '$1 ')).join(' + ')}${what}`
}
