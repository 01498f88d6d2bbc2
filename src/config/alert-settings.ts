import type { AlertSettings, EmailEndpoint, WebhookEndpoint } from '../alerts/endpoints.ts'
import type { Secrets } from '../catalog/file.ts'
import { withoutPassword } from '../shared/address-without-password.ts'
import type { CheckedYaml } from '../shared/checked-yaml.ts'
import type { FileContent } from './config-file.ts'

const SECRET = /^whsec_([A-Za-z0-9+/]+={0,2})$/

export function alertsFrom(yaml: CheckedYaml<FileContent> | undefined, secrets: Secrets): AlertSettings {
  const { webhooks = [], emails = [], spend_thresholds: spendThresholds = [50, 80, 100] } = yaml?.data.alerts ?? {}
  return {
    spendThresholds,
    endpoints: [
      ...webhooks.map(
        ({ name, url, secret_env: variable, allow_private: allowsPrivate = false, events, workspace }, index) =>
          ({
            kind: 'webhook',
            name,
            url,
            allowsPrivate,
            events,
            workspace,
            secret() {
              const secret = Buffer.from(SECRET.exec(secrets(variable) ?? '')?.[1] ?? '', 'base64')
              if (secret.length >= 24 && secret.length <= 64) return secret
              yaml?.mistake(
                ['alerts', 'webhooks', index, 'secret_env'],
                `the environment variable ${variable} must be whsec_ and 24 to 64 bytes in base64`,
              )
              yaml?.requireCorrect()
              return secret
            },
          }) satisfies WebhookEndpoint,
      ),
      ...emails.map(
        ({ to, events, workspace }) =>
          ({
            kind: 'email',
            name: `mailto:${to}`,
            url: `mailto:${to}`,
            recipient: to,
            events,
            workspace,
          }) satisfies EmailEndpoint,
      ),
    ],
  }
}

/** Everything that a restart would change, except the secrets, and what may be one in an address. */
export function alertEndpointTexts({ endpoints }: AlertSettings, kind: 'webhook' | 'email'): readonly string[] {
  return endpoints
    .filter((it) => it.kind === kind)
    .map((it) => {
      const isPrivate = it.kind === 'webhook' && it.allowsPrivate
      const subscribed = [...(it.events ?? []), ...(it.workspace === undefined ? [] : [`of ${it.workspace}`])]
      const url = withoutPassword(it.url)
      return [...(it.name === it.url ? [] : [it.name]), url, ...(isPrivate ? ['private'] : []), ...subscribed].join(' ')
    })
}
