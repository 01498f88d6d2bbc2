/** The size of a disk, in bytes. */
export interface DiskSpace {
  readonly size: number
  readonly free: number
}

/**
 * How much callers may write to the disk that has the journal and the database. A part of it stays free for those two.
 * Several processes may write to the disk, and each knows only what it writes itself and what it has measured.
 */
export interface DiskRoom {
  /**
   * Must resolve before this many bytes are written. Measures the disk, unless the last measurement is recent enough.
   */
  measure(bytes: number): Promise<void>
  /** The bytes that may be written now. Negative when the reserve is in use. */
  left(): number
  /** Counts the bytes from now on, even if they cannot be written. */
  write<Result>(bytes: number, write: () => Promise<Result>): Promise<Result>
  /** The part of the room that one owner may use in this process, so that it gets half in all processes together. */
  readonly ownerShare: number
}

export interface DiskRoomOptions {
  space(): Promise<DiskSpace>
  /** A monotonic clock. */
  now(): number
  /** How many processes write callers' data to this disk. */
  readonly processes: number
}

const MAX_RESERVE_BYTES = 2 ** 30
/** On a small disk, the part that is kept free. */
const RESERVED_PART = 1 / 4
const MEASUREMENT_MS = 1000

/** What of a disk of this size stays free for the journal and the database. */
export const reservedBytes = (size: number): number => Math.min(MAX_RESERVE_BYTES, size * RESERVED_PART)

export function diskRoom({ space, now, processes }: DiskRoomOptions): DiskRoom {
  // All writes since the start, in bytes.
  let begun = 0
  let ended = 0
  /** Writes that had ended before the measurement are part of it. */
  let measured = { room: 0, ended: 0, step: 0, atMs: -Infinity }
  let measuring: Promise<void> | undefined

  const since = (): number => begun - measured.ended
  const left = (): number => measured.room - since()

  async function measureNow(): Promise<void> {
    const endedBefore = ended
    const { size, free } = await space()
    const reserve = reservedBytes(size)
    // Processes that measure at the same time see the same room. All together use no more than a quarter of the
    // reserve.
    const step = reserve / 4 / processes
    measured = { room: free - reserve, ended: endedBefore, step, atMs: now() }
  }

  return {
    async measure(bytes) {
      const isRecent = now() - measured.atMs < MEASUREMENT_MS
      if (isRecent && since() + bytes <= measured.step && bytes <= left()) return
      await (measuring ??= measureNow().finally(() => (measuring = undefined)))
    },
    left,
    async write(bytes, write) {
      begun += bytes
      try {
        return await write()
      } finally {
        ended += bytes
      }
    },
    // Each process allows this part of what the others have left, so that half is left after the last one.
    ownerShare: 1 - 0.5 ** (1 / processes),
  }
}
