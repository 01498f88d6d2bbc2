import type { Telemetry } from '../telemetry/telemetry.ts'
import { textSchema } from '../../server/common-schema.ts'
import { operatorRoute, type OperatorRoute } from '../../server/operator-route.ts'

const metricsExample = `# HELP weir_requests_total Responses by status
# TYPE weir_requests_total counter
weir_requests_total{status="200"} 1027
`

export function metricsRoute({ telemetry }: { readonly telemetry: Telemetry }): OperatorRoute {
  return operatorRoute({
    method: 'GET',
    path: '/metrics',
    id: 'metrics',
    summary: 'Metrics',
    description: 'All metrics in the text format of Prometheus.',
    response: { status: 200, content: { 'text/plain': { schema: textSchema, example: metricsExample } } },
    errors: [],
    answer: async ({ exchange }) => exchange.send(200, 'text/plain; version=0.0.4', await telemetry.metrics()),
  })
}
