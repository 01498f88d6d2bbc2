import { KEEP_ALIVE_MS } from './wire/outgoing-response.ts'

/** How long the parts of a request may take, and how long a connection may be idle: as numbers of looks at it. */
export interface ConnectionLimits {
  readonly head: number
  readonly request: number
  readonly idle: number
}

export function limitsOf(requestMs: number, lookMs: number): ConnectionLimits {
  // It may have begun just before a look.
  const looks = (ms: number): number => Math.ceil(ms / lookMs) + 1
  return { head: looks(Math.min(20_000, requestMs)), request: looks(requestMs), idle: looks(KEEP_ALIVE_MS) }
}
