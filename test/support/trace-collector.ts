import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import type { EngineCallSeen } from './scripted-engine.ts'
import type { TestWeir } from './weir.ts'

/** Kinds of spans as OTLP has them. */
export const kinds = { SERVER: 2, CLIENT: 3 }
/** The status of a span that has failed. */
export const ERROR = 2

/** A span as OTLP has it, with its attributes as an object. */
export interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly status: { readonly code?: number }
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly events: readonly { readonly name: string }[]
  readonly attributes: Readonly<Record<string, unknown>>
}

interface OtlpBody {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly OtlpAttribute[] }
    readonly scopeSpans: readonly {
      readonly spans: readonly (Omit<Span, 'attributes'> & { attributes: OtlpAttribute[] })[]
    }[]
  }[]
}

interface OtlpAttribute {
  readonly key: string
  readonly value: Readonly<Record<string, unknown>>
}

export interface TraceCollector {
  readonly url: string
  readonly spans: Span[]
  /** Everything received, as text. */
  text(): string
}

/** Receives spans by OTLP over HTTP. */
export async function traceCollector(t: TestContext): Promise<TraceCollector> {
  const spans: Span[] = []
  const bodies: string[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      assert.equal(request.url, '/v1/traces')
      bodies.push(Buffer.concat(chunks).toString())
      const { resourceSpans } = JSON.parse(bodies.at(-1)!) as OtlpBody
      for (const span of resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans))) {
        const attributes = span.attributes.map(({ key, value }) => [key, Object.values(value)[0]])
        spans.push({ ...span, attributes: Object.fromEntries(attributes) as Span['attributes'] })
      }
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, spans, text: () => bodies.join('\n') }
}

/** Everything that is left is sent when a service stops. */
export async function spansAfterStop(weir: TestWeir, { spans }: TraceCollector): Promise<readonly Span[]> {
  await weir.stop()
  return spans
}

export function named(spans: readonly Span[], name: string, kind?: number): Span {
  const found = spans.find((span) => span.name === name && (kind === undefined || span.kind === kind))
  assert.ok(found, `there is a span ${name} among ${spans.map((it) => it.name).join(', ')}`)
  return found
}

/** The parent span in the request to the engine. */
export function parentSent({ headers }: Pick<EngineCallSeen, 'headers'>): {
  traceId: string
  spanId: string
  flags: string
} {
  const [version, traceId = '', spanId = '', flags = ''] = String(headers['traceparent']).split('-')
  assert.equal(version, '00')
  return { traceId, spanId, flags }
}
