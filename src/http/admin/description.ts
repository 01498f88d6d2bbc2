import type { ApiDescription } from '../openapi.ts'

/** What the documentation says about the operator's API as a whole. */
export const adminDescription: ApiDescription = {
  title: 'Weir operator',
  description: 'Workspaces, keys, prices, usage, invoices and metrics, for the operator of a Weir service.',
  base: '',
  documentPath: '/admin/v1/openapi.json',
  credentials: { name: 'operatorToken', description: "The operator's token: Authorization: Bearer <TOKEN>" },
  headers: {
    'X-Request-Id': { description: 'Identifies the request in logs.', schema: { type: 'string' } },
  },
  errors: ['missing_api_key', 'invalid_api_key', 'internal_error', 'service_unavailable'],
  introduction: `<section><h2>Calling the operator's API</h2>
<p>Every request carries <code>Authorization: Bearer &lt;TOKEN&gt;</code> with the operator's token. Unless <code>WEIR_OPERATOR_TOKEN</code> is set, the first start writes it to the file <code>operator-token</code> in the data directory. API keys are not accepted here.</p>
<pre>curl http://127.0.0.1:8081/admin/v1/workspaces \\
  -H "Authorization: Bearer $(cat data/operator-token)"</pre>
<p>The commands of <code>weir</code> do the same on the same data. Every response carries <code>X-Request-Id</code>.</p>
</section>`,
}
