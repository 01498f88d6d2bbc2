/** Short-lived values that every replica sees. Rejects while Redis does not answer. */
export interface SharedValues {
  put(key: string, value: string, ms: number): Promise<void>
  get(key: string): Promise<string | undefined>
  /** Gets it and removes it, so only one caller gets it. */
  take(key: string): Promise<string | undefined>
  remove(key: string): Promise<void>
}
