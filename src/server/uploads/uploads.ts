/** Bytes that can be read at any position, a little at a time. */
export interface ByteSource {
  readonly length: number
  /** Fills the buffer from `position` on, as far as there are bytes; resolves to the number of bytes. */
  read(into: Buffer, position: number): Promise<number>
}

/** An upload on disk, for as long as its request lives. */
export interface SpooledFile extends ByteSource {
  append(chunks: readonly Buffer[]): Promise<void>
  /** Releases the disk space. Only the first call counts. */
  close(): Promise<void>
}

export interface Spool {
  /** `owner`: the workspace whose share of the disk space it uses. */
  open(owner: string): Promise<SpooledFile>
}

/** What was found in an upload. */
export interface MeasuredAudio {
  readonly extension: string
  readonly contentType: string
  /** undefined: its length cannot be determined. */
  readonly durationMs: number | undefined
  /** The length is what its headers say, because it cannot be decoded. The engine has to confirm it. */
  readonly isClaimed: boolean
}
