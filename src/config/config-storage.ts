import type { Secrets } from '../catalog/file.ts'
import type { FileContent } from './config-file.ts'
import type { CheckedYaml } from '../shared/checked-yaml.ts'

/** Where images are stored when a caller asks for a link. A part of config.ts. */
export type FilesConfig =
  | {
      readonly kind: 'local'
      /** undefined means the address of the public listener. */
      readonly publicUrl: string | undefined
      readonly linkTtlSeconds: number
      readonly maxBytes: number
    }
  | {
      readonly kind: 's3'
      readonly endpoint: string
      readonly bucket: string
      readonly region: string
      readonly accessKey: string
      readonly secretKey: string
      readonly prefix: string
      readonly publicUrl: string | undefined
      readonly linkTtlSeconds: number
    }

export function filesFrom(yaml: CheckedYaml<FileContent>, host: string, secrets: Secrets): FilesConfig | undefined {
  const { files } = yaml.data
  if (!files) return undefined
  const publicUrl = files.public_url
  const linkTtlSeconds = files.link_ttl_seconds ?? 3600
  if (files.kind === 'local') {
    if (publicUrl === undefined && (host === '0.0.0.0' || host === '::')) {
      yaml.mistake(
        ['files', 'public_url'],
        `is required when the service listens on every address (${host}): links need a host name`,
      )
      yaml.requireCorrect()
    }
    return { kind: 'local', publicUrl, linkTtlSeconds, maxBytes: files.max_bytes ?? 10 * 1024 ** 3 }
  }
  const secret = (key: 'access_key_env' | 'secret_key_env'): string => {
    const value = secrets(files[key])
    if (value === undefined) yaml.mistake(['files', key], `the environment variable ${files[key]} is not set`)
    return value ?? ''
  }
  const [accessKey, secretKey] = [secret('access_key_env'), secret('secret_key_env')]
  yaml.requireCorrect()
  return {
    kind: 's3',
    endpoint: files.endpoint,
    bucket: files.bucket,
    region: files.region,
    accessKey,
    secretKey,
    prefix: files.prefix ?? '',
    publicUrl,
    linkTtlSeconds,
  }
}
