/** The folder of the data directory that has the files, unless they are in S3. */
export const FILES_FOLDER = 'batches'
/** The file in this folder that names it as a storage. */
export const PLACE_FILE = 'place'

/** A file of a workspace: the input of a batch, or what came of one. */
export interface StoredFile {
  readonly id: string
  readonly workspaceId: string
  readonly purpose: FilePurpose
  readonly filename: string
  readonly bytes: number
  /** The storage that has its bytes. */
  readonly place: string
  readonly createdAt: number
  readonly expiresAt: number
}

export type FilePurpose = 'batch' | 'batch_output'

export interface FileQuery {
  readonly workspaceId: string
  readonly purpose?: FilePurpose | undefined
  readonly order: 'asc' | 'desc'
  /** The last file of the page before. */
  readonly after?: Pick<StoredFile, 'createdAt' | 'id'> | undefined
  readonly limit: number
}

/** What one workspace may have stored. */
export interface FileQuota {
  readonly maxFiles: number
  readonly maxStoredBytes: number
}

export interface StorageRoom {
  /** The bytes that the storage of the file still has room for. */
  readonly room: number
}

/** The files of batches, without their bytes. */
export interface StoredFileStore {
  /**
   * Adds a file whose bytes are not stored yet. False, with no effect, if the quota has no room for it beside the files that have
   * not expired, or if those of its workspace would take more than half of the storage. An expired one may be left: no service has
   * its storage any more.
   */
  reserveFile(file: StoredFile, quota: FileQuota & StorageRoom): Promise<boolean>
  /** Its bytes are stored: from now on it is found. */
  finishFile(id: string): Promise<void>
  storedFile(workspaceId: string, id: string): Promise<StoredFile | undefined>
  storedFiles(query: FileQuery): Promise<readonly StoredFile[]>
  removeFile(id: string): Promise<void>
  /** Files of this place that have expired, or whose upload was begun before `abandoned` and has not ended. */
  filesToRemove(place: string, now: number, abandoned: number, limit: number): Promise<readonly StoredFile[]>
}
