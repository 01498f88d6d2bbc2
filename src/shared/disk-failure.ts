/** Disk failures that an operator can do something about. */
export type DiskFailure = 'full' | 'unwritable' | 'failing'

const BY_CODE: Readonly<Record<string, DiskFailure>> = {
  ENOSPC: 'full',
  EDQUOT: 'full',
  EROFS: 'unwritable',
  EACCES: 'unwritable',
  EPERM: 'unwritable',
  ENOTDIR: 'unwritable',
  EFBIG: 'failing',
  EIO: 'failing',
}

/** The disk failure behind a system error code, if it is one. */
export function diskFailureOf(code: unknown): DiskFailure | undefined {
  return typeof code === 'string' && Object.hasOwn(BY_CODE, code) ? BY_CODE[code] : undefined
}

/** One line that says what is wrong and what to do. */
export function explainDiskFailure(failure: DiskFailure, place: string, detail: string): string {
  const kept = 'What was recorded is still there'
  switch (failure) {
    case 'full':
      return `the disk is full, so ${place} cannot be written: free some space and try again. ${kept}`
    case 'failing':
      return `${place} cannot be written (${detail}): check the disk and its free space, and try again. ${kept}`
    case 'unwritable':
      return `${place} cannot be written (${detail}): make it writable for this user, or choose another with --data`
  }
}
