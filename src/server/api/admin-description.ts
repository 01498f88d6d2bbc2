import type { ApiDescription } from '../openapi.ts'

/** What the documentation says about the operator's API as a whole. */
export const adminDescription: ApiDescription = {
  title: 'Weir operator',
  description: 'Workspaces, keys, prices, usage, invoices and metrics, for the operator of a Weir service.',
  base: '',
  documentPath: '/admin/v1/openapi.json',
  credentials: {
    name: 'operatorToken',
    description: "The operator's token: Authorization: Bearer <TOKEN>",
    label: 'Operator token',
    variable: 'WEIR_OPERATOR_TOKEN',
  },
  headers: {
    'X-Request-Id': { description: 'Identifies the request in logs.', schema: { type: 'string' } },
  },
  errors: ['missing_api_key', 'invalid_api_key', 'role_not_allowed', 'internal_error', 'service_unavailable'],
  introduction: `<p>Every request carries <code>Authorization: Bearer &lt;TOKEN&gt;</code> with the operator's token. Unless <code>WEIR_OPERATOR_TOKEN</code> is set, the first start writes it to the file <code>operator-token</code> in the data directory. API keys are not accepted here.</p>
<p>The commands of <code>weir</code> do the same on the same data. Every response carries <code>X-Request-Id</code>.</p>`,
}
