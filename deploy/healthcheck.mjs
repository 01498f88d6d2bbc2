// Whether the service answers. It is still alive while it drains, or while PostgreSQL or Redis is away.
import { get } from 'node:http'

const port = process.env['WEIR_PORT'] || 8080
get({ host: '127.0.0.1', port, path: '/healthz', timeout: 2000 }, (response) => {
  process.exit(response.statusCode === 200 ? 0 : 1)
})
  .on('timeout', () => process.exit(1))
  .on('error', () => process.exit(1))
