import { setImmediate as nextTurn } from 'node:timers/promises'
import type { FileWindow } from './file-window.ts'

/**
 * Counts how long the packets of a track play. Times in a container are whatever its writer says, so only the codec's
 * own headers count.
 */
export interface PacketCounter {
  /** The sound so far. NaN: a packet was not what the codec allows. */
  readonly seconds: number
  /**
   * Adds the next bytes of the track. A packet that lies in several places is added piece by piece. Returns a promise
   * only if it has to read on.
   */
  add(file: FileWindow, position: number, bytes: number, isContinued?: boolean): Promise<void> | undefined
}

/** At 20 ms each, eleven hours. */
const MAX_PACKETS = 2_000_000

/**
 * The most that headers can take off a recording: the delay and padding that an encoder adds at its ends. What is cut
 * off beyond that is billed, because not every decoder cuts it off.
 */
const MAX_DISCARDED_SECONDS = 0.2

export function withoutPadding(seconds: number, discardedSeconds: number): number {
  const discarded = Math.min(Math.max(0, discardedSeconds), MAX_DISCARDED_SECONDS)
  // Only damaged files are shorter than their padding.
  return discarded < seconds ? seconds - discarded : seconds
}

/** For a codec whose packets are told apart by their first bytes. */
export function headCounter(headBytes: number, secondsOf: (head: Buffer, bytes: number) => number): PacketCounter {
  let seconds = 0
  return {
    get seconds() {
      return seconds
    },
    add(file, position, bytes, isContinued = false) {
      if (isContinued) return undefined
      const wanted = Math.min(headBytes, bytes)
      const head = wanted === 0 ? NO_BYTES : file.peek(position, wanted)
      if (!head) return file.at(position, wanted).then((read) => void (seconds += secondsOf(read, bytes)))
      seconds += secondsOf(head, bytes)
      return undefined
    },
  }
}

const NO_BYTES = Buffer.alloc(0)

/** For a codec whose samples have a fixed size, however they are put into packets. */
export function byteCounter(bytesPerSecond: number): PacketCounter {
  let bytes = 0
  return {
    get seconds() {
      return bytes / bytesPerSecond
    },
    add(_file, _position, added) {
      bytes += added
      return undefined
    },
  }
}

const TURN_PACKETS = 4096

/** Limits the packets (or other parts) of a file, and lets other requests run now and then. */
export interface PacketBudget {
  /** Takes packets from the budget. A promise: wait for it before going on. */
  spend(packets?: number): Promise<void> | undefined
  readonly isSpent: boolean
}

export function packetBudget(most = MAX_PACKETS): PacketBudget {
  let left = most
  let untilTurn = TURN_PACKETS
  return {
    spend(packets = 1) {
      left -= packets
      untilTurn -= packets
      if (untilTurn > 0) return undefined
      untilTurn = TURN_PACKETS
      return nextTurn()
    },
    get isSpent() {
      return left < 0
    },
  }
}
