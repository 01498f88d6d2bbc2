/** What a disk has, in bytes. */
export interface DiskSpace {
  readonly size: number
  readonly free: number
}

/**
 * How much callers may put on the disk that the journal and the database write to. A part of it stays free for those
 * two. Several processes may write to the disk, and each knows only what it writes itself and what it has measured.
 */
export interface DiskRoom {
  /** Has to resolve before so many bytes are written. Measures the disk, unless the last measurement is good enough. */
  measure(bytes: number): Promise<void>
  /** The bytes that may be written now. Negative when the reserve is in use. */
  left(): number
  /** The bytes count from now on, even if they cannot be written. */
  write<Result>(bytes: number, write: () => Promise<Result>): Promise<Result>
  /** The part of the room that one owner may have in this process, so that it has half in all processes together. */
  readonly ownerShare: number
}

export interface DiskRoomOptions {
  space(): Promise<DiskSpace>
  /** A monotonic clock. */
  now(): number
  /** How many processes put the data of callers on this disk. */
  readonly processes: number
}

const MAX_RESERVE_BYTES = 2 ** 30
/** On a small disk, the part that is kept free. */
const RESERVED_PART = 1 / 4
const MEASUREMENT_MS = 1000

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
    const reserve = Math.min(MAX_RESERVE_BYTES, size * RESERVED_PART)
    // Processes that measure at the same time see the same room. All together take no more than a quarter of the reserve.
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
    // Each process gives this part of what the others have left, so after the last one, half is left.
    ownerShare: 1 - 0.5 ** (1 / processes),
  }
}
