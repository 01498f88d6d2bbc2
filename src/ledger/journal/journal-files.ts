/** Where the journal is written: numbered segments, on a disk that may fail at any time. */
export interface JournalFiles {
  /** The numbers of the segments that exist, in order. */
  list(): Promise<readonly number[]>
  /** Resolves when the name is durable. Rejects if the segment exists. */
  create(segment: number): Promise<SegmentWriter>
  /** The bytes of a segment from one offset to another, or to the end. */
  read(segment: number, from?: number, to?: number): Promise<Buffer>
  /** May be undone by a crash. */
  remove(segment: number): Promise<void>
  /** Renames the file, so that it can be examined. It is no longer listed. */
  putAway(segment: number): Promise<void>
}

export interface SegmentWriter {
  /**
   * Writes at an offset, over what is there. Calls back when the bytes are durable; without `durable`, when the
   * operating system has them, so that they survive the process.
   */
  write(bytes: Buffer, offset: number, durable: boolean, done: (error: Error | null) => void): void
  close(): void
}
