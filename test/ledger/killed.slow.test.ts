import assert from 'node:assert/strict'
import { it } from 'node:test'
import { killAgainAndAgain } from '../support/killed-service.ts'

it('a service killed 200 times under load loses and duplicates no row of an answer that was received', async (t) => {
  const { received, interrupted } = await killAgainAndAgain(200)
  assert.ok(received > 3200, `${received} answers`)
  t.diagnostic(`${received} answers received, ${interrupted} requests cut off and settled at nothing`)
})
