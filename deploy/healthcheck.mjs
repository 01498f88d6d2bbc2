// Whether the service answers. It is still alive while it drains, or while PostgreSQL or Redis is away.
import { get } from 'node:http'
import { get as getSecurely } from 'node:https'

const port = process.env['WEIR_PORT'] || 8080

// With server.tls it answers only HTTPS, and its certificate is for the name that callers use.
ask(get, () => ask(getSecurely, () => process.exit(1)))

function ask(how, otherwise) {
  const options = { host: '127.0.0.1', port, path: '/healthz', timeout: 2000, rejectUnauthorized: false }
  how(options, (response) => process.exit(response.statusCode === 200 ? 0 : 1))
    .on('timeout', () => process.exit(1))
    .on('error', otherwise)
}
