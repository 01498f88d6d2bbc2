// npm run bench [-- NAME [ARGUMENTS] [--publish]]: runs one benchmark or all of them. They only measure; none of them can fail a
// build.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ensureInstalled, root, runtime, runtimeEnvironment, runtimeFlags } from './bootstrap.mjs'
import { publish } from './figures.mjs'

const benches = {
  http: 'http/run.ts',
  peers: 'peers.ts',
  embeddings: 'embeddings.ts',
  admission: 'admission.ts',
  'admission-redis': 'admission-redis.ts',
  ledger: 'ledger.ts',
  workers: 'workers.ts',
  tokens: 'tokens.ts',
  held: 'held.ts',
  growth: 'growth.ts',
  start: 'start.ts',
  overload: 'overload.ts',
  batches: 'batches.ts',
  uploads: 'uploads.ts',
  'console-rows': 'console-rows.ts',
  requests: 'requests.ts',
  fleet: 'fleet.ts',
  embedded: 'embedded-engine.ts',
  quality: 'model-quality.ts',
}

const given = process.argv.slice(2)
const isForHelp = given.some((it) => it === '--help' || it === '-h')
const isPublished = given.includes('--publish')
const [chosen, ...args] = given.filter((it) => it !== '--publish' && (!isForHelp || !it.startsWith('-')))
if (chosen !== undefined && !(chosen in benches)) {
  console.error(`bench: there is no benchmark "${chosen}"; choose one of ${Object.keys(benches).join(', ')}`)
  process.exit(2)
}
if (isForHelp) {
  console.log(chosen === undefined ? listOfAll() : helpOf(chosen))
  process.exit(0)
}
ensureInstalled({ development: true })
const folder = mkdtempSync(join(tmpdir(), 'weir-figures-'))
process.once('exit', () => rmSync(folder, { recursive: true }))
for (const name of chosen ? [chosen] : Object.keys(benches)) {
  const file = join(folder, name)
  // Weir and what it is compared with both run with the V8 options and the compile cache of `npm start`.
  const { status } = spawnSync(runtime(), [...runtimeFlags, join(root, 'bench', benches[name]), ...args], {
    env: { ...runtimeEnvironment, WEIR_FIGURES_FILE: file },
    stdio: 'inherit',
  })
  if (status !== 0) process.exit(status ?? 1)
  if (isPublished) publish(name, ['npm run bench --', name, ...args].join(' '), file)
}

function listOfAll() {
  return `npm run bench [-- NAME [ARGUMENTS] [--publish]]

Runs one benchmark, or all of them, one after the other. They only measure.
npm run bench -- NAME --help says what it measures, and its arguments.

  --publish   also writes what was measured to docs/figures.json, with the
              date, the commit and the machine, and the tables of the
              documentation that show it

  ${Object.keys(benches).join('\n  ')}`
}

/** What the first comment of its file says. */
function helpOf(name) {
  const [, comment = ''] = /\/\*\*(.*?)\*\//s.exec(readFileSync(join(root, 'bench', benches[name]), 'utf8')) ?? []
  return `npm run bench -- ${name}\n\n${comment.replaceAll(/^ *\* ?/gm, '').trim()}`
}
