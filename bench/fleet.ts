/**
 * How engines share calls: throughput, cache hits and time to first token of a simulated fleet under each way of choosing
 * an address. It is a simulation with fixed seeds, so it prints the same table on every machine.
 */
import { play } from '../test/simulation/fleet/fleet.ts'
import * as loads from '../test/simulation/fleet/loads.ts'
import { policyNames } from '../test/simulation/fleet/policies.ts'

const fleets = [
  { engines: 2, replicas: 1 },
  { engines: 2, replicas: 8 },
  { engines: 4, replicas: 1 },
  { engines: 4, replicas: 4 },
  { engines: 8, replicas: 2 },
  { engines: 16, replicas: 1 },
  { engines: 16, replicas: 8 },
]
/** Requests or sessions for each engine: enough that chance does not matter. */
const kinds = [
  (engines: number) => loads.agents(1, engines * 40),
  (engines: number) => loads.conversations(2, engines * 90),
  (engines: number) => loads.sharedPrompts(3, engines * 160),
  (engines: number) => loads.hotPrefix(4, engines * 480),
  (engines: number) => loads.retrieval(5, engines * 160),
  (engines: number) => loads.unrelated(6, engines * 240),
  (engines: number) => loads.short(7, engines * 320),
]

console.log('| Load | Engines | Replicas | Choice | Requests/s | Cached | First token p50 | p99 |')
console.log('| --- | --: | --: | --- | --: | --: | --: | --: |')
for (const make of kinds) {
  for (const { engines, replicas } of fleets) {
    const load = make(engines)
    for (const policy of policyNames) {
      const result = play(load, policy, { engines, replicas, cacheTokens: 200_000, seed: 9 })
      const { requestsPerSecond, hitRate, firstTokenMs } = result
      const cells = [
        load.name,
        engines,
        replicas,
        policy,
        requestsPerSecond.toFixed(1),
        `${(hitRate * 100).toFixed(1)} %`,
      ]
      const times = [firstTokenMs.p50, firstTokenMs.p99].map((ms) => `${Math.round(ms)} ms`)
      console.log(`| ${[...cells, ...times].join(' | ')} |`)
    }
  }
}
