import { it } from 'node:test'
import { openLane } from '../../src/queue/lane.ts'
import { simulationSeed } from '../simulation/seed.ts'
import { simulateLanes } from '../simulation/lane/world.ts'

it('[Q1][Q2][Q4][Q5][Q6] the lane keeps its invariants at every step of 10,000,000 requests', (t) => {
  const seed = simulationSeed()
  t.diagnostic(`WEIR_SEED=${seed}`)
  t.diagnostic(JSON.stringify(simulateLanes(openLane, seed, 10_000_000)))
})
