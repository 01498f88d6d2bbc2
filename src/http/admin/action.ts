/** An action of an operator as it is recorded. */
export interface Action {
  /** The id of the operation. */
  readonly action: string
  /** What it is done to. */
  readonly subject: string
  readonly body: object | undefined
  /** What it changes, as it is at the moment; undefined if there is nothing to show. */
  state(): Promise<object | undefined> | object | undefined
}
