import { it } from 'node:test'
import { killServicesAndPostgres } from '../support/killed-services.ts'

it('services are killed 60 times under load, and PostgreSQL 20 times: no row is lost or duplicated', async (t) => {
  t.diagnostic(`${await killServicesAndPostgres(60)} answers, each with its row`)
})
