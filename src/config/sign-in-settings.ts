import type { Secrets } from '../catalog/file.ts'
import type { CheckedYaml } from '../shared/checked-yaml.ts'
import { isOperatorRole } from '../shared/roles.ts'
import type { RoleRule, SignInProvider } from '../shared/sign-in-provider.ts'
import { withoutTrailing } from '../shared/without-trailing.ts'
import type { FileContent } from './config-file.ts'

/** undefined: people sign in with keys, links and the operator token only. */
export function signInFrom(yaml: CheckedYaml<FileContent>, secrets: Secrets): SignInProvider | undefined {
  const oidc = yaml.data.sign_in?.oidc
  if (!oidc) return undefined
  const { issuer, client_id: clientId, client_secret_env: secretEnv, name, scopes } = oidc
  const roles = oidc.roles.map(({ group, role, workspace }) => ({ group, role, workspace }))
  const urlFor = (isFor: boolean, url: string | undefined): string | undefined =>
    isFor && url !== undefined ? withoutTrailing(url, '/') : undefined
  return {
    issuer,
    clientId,
    clientSecret() {
      if (secretEnv === undefined) return undefined
      const secret = secrets(secretEnv)
      if (secret === undefined) {
        yaml.mistake(['sign_in', 'oidc', 'client_secret_env'], `the environment variable ${secretEnv} is not set`)
        yaml.requireCorrect()
      }
      return secret
    },
    name: name ?? new URL(issuer).hostname,
    scopes: scopes ?? ['openid', 'profile', 'email'],
    publicUrl: urlFor(
      roles.some(({ role }) => !isOperatorRole(role)),
      oidc.public_url,
    ),
    operatorUrl: urlFor(
      roles.some(({ role }) => isOperatorRole(role)),
      oidc.operator_url,
    ),
    groupsClaim: oidc.groups_claim ?? 'groups',
    nameClaim: oidc.name_claim ?? 'name',
    sessionMs: (oidc.session_hours ?? 8) * 3_600_000,
    roles,
  }
}

export function roleRuleText({
  group,
  role,
  workspace,
}: Omit<RoleRule, 'workspace'> & { readonly workspace?: string }): string {
  return `${group}: ${role}${workspace === undefined ? '' : ` of ${workspace}`}`
}
