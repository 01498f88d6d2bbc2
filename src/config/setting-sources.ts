import type { CheckedYaml } from '../shared/checked-yaml.ts'
import type { FileContent } from './config-file.ts'

export interface SettingInputs {
  readonly content: FileContent
  readonly yaml: CheckedYaml<FileContent> | undefined
  /** Options of the command line. */
  readonly overrides: { readonly port?: string | undefined; readonly data?: string | undefined }
  readonly environment: NodeJS.ProcessEnv
}

/** Where the value of a setting comes from: an option, a variable, a line of the file or the default. The first that has it wins. */
export function settingSources({ content, yaml, overrides, environment }: SettingInputs): (key: string) => string {
  const overriding: Readonly<Record<string, readonly (readonly [string, string | undefined])[]>> = {
    'server.host': [['WEIR_HOST', environment['WEIR_HOST']]],
    'server.port': [
      ['--port', overrides.port],
      ['WEIR_PORT', environment['WEIR_PORT']],
    ],
    'server.admin_port': [['WEIR_ADMIN_PORT', environment['WEIR_ADMIN_PORT']]],
    data_dir: [
      ['--data', overrides.data],
      ['WEIR_DATA_DIR', environment['WEIR_DATA_DIR']],
    ],
    database: [['WEIR_DATABASE_URL', environment['WEIR_DATABASE_URL']]],
    coordination: [['WEIR_REDIS_URL', environment['WEIR_REDIS_URL']]],
    operator_token: [['WEIR_OPERATOR_TOKEN', environment['WEIR_OPERATOR_TOKEN']]],
    'tracing.endpoint': ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'].map(
      (name) => [name, environment[name] || undefined] as const,
    ),
    'metrics.endpoint': ['OTEL_EXPORTER_OTLP_METRICS_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'].map(
      (name) => [name, environment[name] || undefined] as const,
    ),
    'tracing.sample': [['OTEL_TRACES_SAMPLER', environment['OTEL_TRACES_SAMPLER'] || undefined]],
  }
  return (key) => {
    const winner = overriding[key]?.find(([, value]) => value !== undefined)
    if (winner) return winner[0]
    const path = key.split('.')
    return yaml && valueIn(content, path) !== undefined ? yaml.placeOf(path) : 'default'
  }
}

function valueIn(content: object, path: readonly string[]): unknown {
  let value: unknown = content
  for (const step of path) value = (value as Record<string, unknown> | undefined)?.[step]
  return value
}
