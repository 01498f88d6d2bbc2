/** The permanent record of operators' actions. */
export interface AuditStore {
  /** Resolves with the id of the entry when it is durable. */
  beginAudit(entry: AuditBeginning): Promise<number>
  /** Only the first end of an entry counts. */
  endAudit(id: number, outcome: 'done' | 'refused', after: string | null): Promise<void>
  /** The newest first; only entries before this id, if it is given. */
  auditLog(query: { readonly before?: number | undefined; readonly limit: number }): Promise<readonly AuditEntry[]>
}

export interface AuditBeginning {
  readonly at: number
  /** Such as "console 1f0c2a9b from 127.0.0.1". */
  readonly actor: string
  readonly requestId: string
  /** The id of the operation. */
  readonly action: string
  /** The object of the action, such as "workspace acme". */
  readonly subject: string
  /** JSON without secrets. */
  readonly request: string | null
  readonly before: string | null
}

export interface AuditEntry extends AuditBeginning {
  readonly id: number
  readonly after: string | null
  /** begun: the service ended before the action did, or it is still running. */
  readonly outcome: 'begun' | 'done' | 'refused'
}
