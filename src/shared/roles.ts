/** What a person who is signed in to a console may do. Each route names the roles that may call it. */

/** In the operator's console. An operator may do everything. */
export const operatorRoles = ['operator', 'finance', 'viewer'] as const
export type OperatorRole = (typeof operatorRoles)[number]

/** In the console of a workspace; each may do what those before it may. A session that a key or a link opened has the role of an administrator. */
export const memberRoles = ['member', 'workspace_admin'] as const
export type MemberRole = (typeof memberRoles)[number]

export type Role = OperatorRole | MemberRole

export function isOperatorRole(role: Role): role is OperatorRole {
  return operatorRoles.some((it) => it === role)
}
