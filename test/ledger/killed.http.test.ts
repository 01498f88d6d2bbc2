import assert from 'node:assert/strict'
import { it } from 'node:test'
import { killAgainAndAgain } from '../support/killed-service.ts'

it('a service killed 3 times under load loses and duplicates no row of an answer that was received', async () => {
  const { received } = await killAgainAndAgain(3)
  assert.ok(received > 48, `${received} answers`)
})
