import { describe, it } from 'node:test'
import { killServicesAndPostgres } from '../support/killed-services.ts'

describe('three services on one PostgreSQL and one Redis', () => {
  it('lose no row and double none when they are killed under load, and PostgreSQL with them', async () => {
    await killServicesAndPostgres(1)
  })
})
