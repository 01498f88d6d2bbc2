// node scripts/engines.mjs: writes docs/engines.md from the tables that the service itself uses.
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root, runOnRuntime } from './bootstrap.mjs'
import { engineNotes } from './engine-notes.mjs'

const file = join(root, 'docs', 'engines.md')
const isProgram = process.argv[1] === fileURLToPath(import.meta.url)

const titles = {
  chat: 'Chat',
  completions: 'Text completion',
  embeddings: 'Embeddings',
  ranking: 'Reranking',
  images: 'Images',
  speech: 'Speech',
}

const rows = (cells) => cells.map((row) => `| ${row.join(' | ')} |`).join('\n')
const code = (text) => `\`${text}\``

/** The page, before oxfmt aligns its tables. */
export async function enginesPage() {
  const { engineKinds } = await import('../src/catalog/model.ts')
  const { dialects } = await import('../src/engines/dialects/index.ts')
  const { healthCheckOf } = await import('../src/engines/dialects/health-check.ts')
  const { engineParameters, supportFor } = await import('../src/engines/dialects/parameter-support.ts')
  const operations = Object.keys(titles)

  const overview = engineKinds.map((kind) => [
    `[${code(kind)}](#${kind})`,
    engineNotes[kind].server,
    operations
      .filter((operation) => dialects[kind][operation])
      .map((operation) => titles[operation].toLowerCase())
      .join(', '),
    healthOf(kind),
  ])

  function healthOf(kind) {
    if (kind === 'embedded') return 'watched as a process'
    const { path } = healthCheckOf({ kind, health: { path: undefined, intervalMs: 0 } })
    return code(path.startsWith('//') ? path.slice(1) : `…${path}`)
  }

  function tableOf(operation) {
    const kinds = engineKinds.filter((kind) => dialects[kind][operation])
    const head = ['Parameter', ...kinds.map(code)]
    const lines = engineParameters[operation].map((name) => [
      code(name),
      ...kinds.map((kind) => cellOf(name, supportFor(kind, operation)[name])),
    ])
    return `### ${titles[operation]}\n\n${rows([head, ['---', ...kinds.map(() => ':-:')], ...lines])}`
  }

  function cellOf(name, support) {
    if (support === 'taken') return '✓'
    if (support === 'refused') return '✗'
    if (support === 'weir') return 'Weir'
    return support.as === name ? '✓ (value)' : code(support.as)
  }

  const sections = engineKinds.map((kind) => {
    const { server, choices, usage, abort, tooLong, read, more = [] } = engineNotes[kind]
    const points = [
      ['Several choices and prompts', choices],
      ['Usage', usage],
      ['When a call is aborted', abort],
      ['Input that is too long', tooLong],
      ...more.map((text) => ['Also', text]),
      ['Read', read],
    ]
    const list = points.filter(([, text]) => text).map(([title, text]) => `- **${title}.** ${text}`)
    return `### ${kind}\n\n${server}\n\n${list.join('\n')}`
  })

  return `<!-- Written by \`node scripts/engines.mjs\` from the tables in src/engines/dialects and scripts/engine-notes.mjs; do not edit. -->

# Engines

Weir speaks to each kind of server in its own way. The kind is \`engine.kind\` in the catalog.

${rows([['Kind', 'Server', 'Operations', 'Health'], ['---', '---', '---', '---'], ...overview])}

A health path that starts with \`…\` follows the address in the catalog; the others are at the root of the server.
\`health.path\` in the catalog replaces it.

## Parameters

Nothing that a caller sends is silently lost. A parameter is forwarded, translated or handled by Weir itself; if the engine
ignores it or cannot do it, the request is refused with \`unsupported_parameter\` before any work. A value that asks for
the default behaviour (\`n: 1\`, \`top_p: 1\`) is always accepted and not forwarded.

The caller sees the model's \`supported_parameters\`, as the catalog lists them. If the catalog lists one that the engine
of a deployment does not take, the log has a warning at the start and at every reload, and so do
\`weir check\` and \`weir doctor\`.

- ✓: forwarded under its own name. **✓ (value)**: under its own name, with the value that this server expects.
- a name: forwarded under that name.
- Weir: Weir does it itself. The engine never sees it.
- ✗: refused.

Weir handles these itself for every kind: \`model\`, \`stream\`, \`stream_options\`, \`max_tokens\`,
\`max_completion_tokens\`, \`encoding_format\`, \`top_n\`, \`return_documents\`, \`truncate\`, \`size\`, \`user\`, \`metadata\`,
\`store\`, \`service_tier\`, \`safety_identifier\`, \`prompt_cache_key\`, and for images \`n\` and \`response_format\`.

${operations.map(tableOf).join('\n\n')}

## Kind by kind

"Read" names the source of each section: the source of the server (with the commit that was read, if known), its
documentation, or answers that were captured from a running one. Other versions may differ; please
[report](../.github/ISSUE_TEMPLATE/engine.yml) what you find. Where each wire format comes from is listed in
[the fixtures](../test/fixtures/dialects/README.md).

${sections.join('\n\n')}
`
}

if (isProgram) {
  await runOnRuntime(import.meta.url, async () => {
    writeFileSync(file, await enginesPage())
    spawnSync(join(root, 'node_modules', '.bin', 'oxfmt'), [file], { cwd: root })
    console.log('docs/engines.md is written')
  })
}
