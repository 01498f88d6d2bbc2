import type { Telemetry } from '../telemetry/telemetry.ts'
import { metricsFormat, metricsText, metricsTypes } from '../telemetry/metrics-text.ts'
import { textSchema } from '../../server/common-schema.ts'
import { operatorRoute, type OperatorRoute } from '../../server/operator-route.ts'

const plainExample = `# HELP weir_requests_total Responses by status
# TYPE weir_requests_total counter
weir_requests_total{status="200"} 1027
`
const openExample = `# HELP weir_requests Responses by status
# TYPE weir_requests counter
weir_requests_total{status="200"} 1027
# EOF
`

export function metricsRoute({ metrics }: Pick<Telemetry, 'metrics'>): OperatorRoute {
  return operatorRoute({
    method: 'GET',
    path: '/metrics',
    id: 'metrics',
    summary: 'Metrics',
    description:
      'All metrics in the text format of Prometheus. To a scraper that accepts OpenMetrics, in that format, with the trace ids of requests as exemplars.',
    response: {
      status: 200,
      content: {
        'text/plain': { schema: textSchema, example: plainExample },
        'application/openmetrics-text': { schema: textSchema, example: openExample },
      },
    },
    errors: [],
    async answer({ exchange }) {
      const format = metricsFormat(exchange.request.headers.accept ?? '')
      exchange.send(200, metricsTypes[format], metricsText(await metrics(), format), { Vary: 'Accept' })
    },
  })
}
