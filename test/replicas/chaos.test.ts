import { it } from 'node:test'
import { chaos } from '../support/replica-chaos.ts'
import { simulationSeed } from '../simulation/seed.ts'

it('[Q1][Q2] four replicas in separate processes keep the limit, whatever happens to them and to Redis', async (t) => {
  const seed = simulationSeed()
  t.diagnostic(`WEIR_SEED=${seed}`)
  const { served } = await chaos(7, seed)
  t.diagnostic(`${served} requests served`)
})
