/** The result of one check. */
export interface CheckResult {
  readonly name: string
  readonly state: 'ok' | 'note' | 'problem'
  readonly detail: string
  /** What to do about it, unless the check passed. */
  readonly advice?: string
}
