/**
 * How engines share calls: throughput, cache hits and time to first token of a simulated fleet under each way of choosing
 * an address. It is a simulation with fixed seeds, so it prints the same table on every machine.
 *
 * npm run bench -- fleet [held-out] [SEED] [LOAD]: with held-out, loads that no constant was chosen by: the same with other
 * seeds, and others. A seed that was never used before shows what is luck.
 */
import { finding } from './figures.ts'
import { play, type Fleet, type Result } from '../test/simulation/fleet/fleet.ts'
import * as held from '../test/simulation/fleet/held-out-loads.ts'
import * as loads from '../test/simulation/fleet/loads.ts'
import { policyNames, type PolicyName } from '../test/simulation/fleet/policies.ts'

const fleets = [
  { engines: 2, replicas: 1 },
  { engines: 2, replicas: 8 },
  { engines: 4, replicas: 1 },
  { engines: 4, replicas: 4 },
  { engines: 8, replicas: 2 },
  { engines: 16, replicas: 1 },
  { engines: 16, replicas: 8 },
]

/** As many requests or sessions for each engine, or for each replica, that chance does not matter. */
type Kind = (size: number, seed: number) => loads.Load
const usual: readonly Kind[] = [
  (size, seed) => loads.agents(seed + 1, size * 40),
  (size, seed) => loads.conversations(seed + 2, size * 90),
  (size, seed) => loads.sharedPrompts(seed + 3, size * 160),
  (size, seed) => loads.hotPrefix(seed + 4, size * 480),
  (size, seed) => loads.retrieval(seed + 5, size * 160),
  (size, seed) => loads.unrelated(seed + 6, size * 240),
  (size, seed) => loads.short(seed + 7, size * 320),
]
const others: readonly Kind[] = [
  (size, seed) => held.longAgents(seed + 8, size * 20),
  (size, seed) => held.editedConversations(seed + 9, size * 90),
  (size, seed) => held.ownDocuments(seed + 10, size * 30),
  (size, seed) => held.jobs(seed + 11, size * 40),
  (size, seed) => held.manyTenants(seed + 12, size * 200),
  (size, seed) => held.quietTenants(seed + 13, size * 100),
  (size, seed) => held.mixed(seed + 14, size * 80),
  (size, seed) => held.quiet(seed + 15, size * 100),
]

const args = process.argv.slice(2)
const isHeldOut = args[0] === 'held-out'
const seed = Number(args.find((arg) => /^\d+$/.test(arg)) ?? (isHeldOut ? 100 : 0))
const only = args.find((arg) => arg !== 'held-out' && !/^\d+$/.test(arg))
const shown: readonly PolicyName[] = isHeldOut ? ['least busy', 'prefix', 'oracle'] : policyNames
const heads = [...shown.map((name) => name[0]!.toUpperCase() + name.slice(1)), 'Hits of oracle', 'Rate of least busy']
console.log(`| Load | Engines | Replicas | ${heads.join(' | ')} |`)
console.log(`| --- | --: | --: | ${heads.map(() => '--:').join(' | ')} |`)
for (const kind of isHeldOut ? [...usual, ...others] : usual) {
  if (only !== undefined && kind(1, 0).name !== only) continue
  for (const { engines, replicas } of fleets) {
    const load = kind(Math.max(engines, replicas), seed)
    const fleet: Fleet = { engines, replicas, cacheTokens: 200_000, seed: seed + 9 }
    const results = new Map(shown.map((policy) => [policy, play(load, policy, fleet)]))
    const [busy, prefix, oracle] = (['least busy', 'prefix', 'oracle'] as const).map((policy) => results.get(policy)!)
    const cells: readonly (readonly [head: string, cell: string])[] = [
      ...[...results].map(([policy, result]) => [policy, figures(result)] as const),
      ['hits of oracle', share(prefix!.hitRate, oracle!.hitRate)],
      ['rate of least busy', share(prefix!.requestsPerSecond, busy!.requestsPerSecond)],
    ]
    const key = `${isHeldOut ? 'held-out.' : ''}${load.name}.${engines}.${replicas}`
    for (const [head, cell] of cells) finding(`${key}.${head}`, cell)
    console.log(`| ${[load.name, engines, replicas, ...cells.map(([, cell]) => cell)].join(' | ')} |`)
  }
}

function figures({ requestsPerSecond, hitRate, firstTokenMs: { p50, p99 } }: Result): string {
  const cached = `${Math.round(hitRate * 100)} %`
  return `${Math.round(requestsPerSecond)}/s · ${cached} · ${Math.round(p50)} / ${Math.round(p99)}`
}

function share(one: number, other: number): string {
  return other === 0 ? '–' : `${((one / other) * 100).toFixed(1)} %`
}
