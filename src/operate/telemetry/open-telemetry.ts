import { setGlobalErrorHandler } from '@opentelemetry/core'
import { detectResources, envDetector, type Resource, resourceFromAttributes } from '@opentelemetry/resources'

/** What traces and metrics that are sent to a collector share. Loaded only where one is configured. */

/** A collector that is away fails every few seconds. */
const WARN_MS = 60_000

/** What could not be sent is reported once a minute. */
export function reportFailures(failed: (reason: string) => void): void {
  let warnedAt = -Infinity
  setGlobalErrorHandler((error) => {
    if (performance.now() - warnedAt < WARN_MS) return
    warnedAt = performance.now()
    failed(typeof error === 'string' ? error : (error.message ?? 'unknown'))
  })
}

/** OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES replace our own, except the name of this process, which is unique. */
export function resourceOf({ version, instance }: { readonly version: string; readonly instance: string }): Resource {
  return resourceFromAttributes({ 'service.name': 'weir', 'service.version': version })
    .merge(detectResources({ detectors: [envDetector] }))
    .merge(resourceFromAttributes({ 'service.instance.id': instance }))
}
