import { diskRoom, type DiskRoom } from '../../src/shared/disk-room.ts'

/** A disk that never gets full, for tests of other limits. */
export function roomyDisk(): DiskRoom {
  return diskRoom({ space: async () => ({ size: 2 ** 50, free: 2 ** 50 }), now: () => 0, processes: 1 })
}
