// npm run bench [-- NAME]: measurements, side by side in one run; no figure is a test.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { ensureInstalled, root, runtime, runtimeFlags } from './bootstrap.mjs'

const benches = {
  http: 'http/run.ts',
  embeddings: 'embeddings.ts',
  admission: 'admission.ts',
  tokens: 'tokens.ts',
  held: 'held.ts',
  overload: 'overload.ts',
  uploads: 'uploads.ts',
  usage: 'usage.ts',
  embedded: 'embedded-engine.ts',
}

ensureInstalled({ development: true })
const [asked, ...args] = process.argv.slice(2)
if (asked !== undefined && !(asked in benches)) {
  console.error(`bench: there is no "${asked}"; there are ${Object.keys(benches).join(', ')}`)
  process.exit(2)
}
for (const name of asked ? [asked] : Object.keys(benches)) {
  // With the young space of `npm start`, for Weir and for what it is compared with.
  const { status } = spawnSync(runtime(), [...runtimeFlags, join(root, 'bench', benches[name]), ...args], {
    stdio: 'inherit',
  })
  if (status !== 0) process.exit(status ?? 1)
}
