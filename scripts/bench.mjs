// npm run bench [-- NAME]: runs one benchmark or all of them. They only measure; none of them can fail a build.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { ensureInstalled, root, runtime, runtimeEnvironment, runtimeFlags } from './bootstrap.mjs'

const benches = {
  http: 'http/run.ts',
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
  uploads: 'uploads.ts',
  'console-rows': 'console-rows.ts',
  fleet: 'fleet.ts',
  embedded: 'embedded-engine.ts',
  quality: 'model-quality.ts',
}

ensureInstalled({ development: true })
const [chosen, ...args] = process.argv.slice(2)
if (chosen !== undefined && !(chosen in benches)) {
  console.error(`bench: there is no benchmark "${chosen}"; choose one of ${Object.keys(benches).join(', ')}`)
  process.exit(2)
}
for (const name of chosen ? [chosen] : Object.keys(benches)) {
  // Weir and what it is compared with both run with the V8 options and the compile cache of `npm start`.
  const { status } = spawnSync(runtime(), [...runtimeFlags, join(root, 'bench', benches[name]), ...args], {
    env: runtimeEnvironment,
    stdio: 'inherit',
  })
  if (status !== 0) process.exit(status ?? 1)
}
