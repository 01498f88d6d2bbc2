import { claimedSeconds } from './claimed-seconds.ts'
import { measureHere } from './measuring-thread.ts'

/** A worker thread: reads the length of one recording from its headers. */
await measureHere(claimedSeconds)
