import { CONSOLE_BASE } from '../console/session-route.ts'
import type { ApiDescription } from '../openapi.ts'
import { publicDescription } from './public-description.ts'

/** What the documentation says about the console's own API. The console calls the public API as well. */
export const consoleDescription: ApiDescription = {
  title: 'Weir console',
  description: 'What the console of a workspace needs besides the public API: sessions, keys, reports and invoices.',
  base: CONSOLE_BASE,
  documentPath: `${CONSOLE_BASE}/openapi.json`,
  credentials: {
    name: 'session',
    description: 'The cookie that signing in sets. A request that changes something also sends X-Weir-Console: 1.',
    label: 'Session',
    variable: 'WEIR_SESSION',
    cookie: 'weir_session',
  },
  headers: publicDescription.headers,
  errors: ['role_not_allowed', ...publicDescription.errors],
  introduction: '',
}
