import { describe, it } from 'node:test'
import { killServicesAndPostgres } from '../support/killed-services.ts'

describe('three services on one PostgreSQL and one Redis', () => {
  it('lose and duplicate no row when they are killed under load, and PostgreSQL with them', async () => {
    await killServicesAndPostgres(1)
  })
})
