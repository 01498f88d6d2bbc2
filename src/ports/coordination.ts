/**
 * How this process agrees with other replicas. `alone`: there are none. `joined`: through Redis. `apart`: Redis cannot be
 * reached, and this replica serves its share. `stopped`: for so long that others may have been given the share, so
 * nobody new is admitted here.
 */
export type CoordinationState = 'alone' | 'joined' | 'apart' | 'stopped'

export interface Coordination {
  state(): CoordinationState
  /** How many replicas there were when Redis was last heard, this one included. */
  replicas(): number
}
