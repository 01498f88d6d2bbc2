/** Bytes that can be read anywhere, a little at a time. */
export interface ByteSource {
  readonly length: number
  /** Fills the buffer from `position` on, as far as there are bytes; resolves to how many there were. */
  read(into: Buffer, position: number): Promise<number>
}

/** An upload on disk, for as long as its request lives. */
export interface SpooledFile extends ByteSource {
  append(chunks: readonly Buffer[]): Promise<void>
  /** Gives the room back. Only the first call counts. */
  close(): Promise<void>
}

export interface Spool {
  /** `owner`: the workspace whose share of the room it uses. */
  open(owner: string): Promise<SpooledFile>
}

/** What an upload was found to hold. */
export interface MeasuredAudio {
  readonly extension: string
  readonly contentType: string
  /** undefined: its length cannot be determined. */
  readonly durationMs: number | undefined
  /** The length is what its headers say, because it cannot be decoded. The engine has to confirm it. */
  readonly isClaimed: boolean
}
