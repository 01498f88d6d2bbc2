/** Keeps files for a while, so that an answer can contain a link. */
export interface FileStore {
  /** Stores a file of this owner, then resolves to a link that is valid for a limited time. */
  put(bytes: Buffer, contentType: string, owner: string): Promise<string>
  /** Opens the file behind a link, if links point to Weir itself; `query` is the part after the question mark. */
  open?(name: string, query: string): Promise<OpenedFile>
  close(): Promise<void>
}

export interface OpenedFile {
  readonly contentType: string
  readonly length: number
  readonly secondsLeft: number
  /** The receiver must read it to the end or destroy it. */
  readonly stream: NodeJS.ReadableStream & { destroy(): unknown }
}
