/** Keeps files for a while, so that an answer can be a link. */
export interface FileStore {
  /** Resolves to a link that opens for a limited time, when the file is where the link leads. */
  put(bytes: Buffer, contentType: string): Promise<string>
  /** What a link leads to, where links lead back to Weir itself; `query` is the part behind the mark. */
  open?(name: string, query: string): Promise<OpenedFile>
  close(): Promise<void>
}

export interface OpenedFile {
  readonly contentType: string
  readonly length: number
  readonly secondsLeft: number
  /** Whoever gets it reads it to the end or destroys it. */
  readonly stream: NodeJS.ReadableStream & { destroy(): unknown }
}
