import { it } from 'node:test'
import { chaos } from '../support/replica-chaos.ts'
import { simulationSeed } from '../simulation/seed.ts'

it('[Q1][Q2] four replicas keep the limit through 100 of each: kills, stops, cuts, black holes, delays and restarts of Redis', async (t) => {
  const seed = simulationSeed()
  t.diagnostic(`WEIR_SEED=${seed}`)
  const { served, deeds } = await chaos(700, seed)
  t.diagnostic(`${served} requests served, ${JSON.stringify([...deeds])}`)
})
