import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface SmallDisk {
  readonly folder: string
  /** It cannot become smaller than what it holds. */
  resize(bytes: number): void
  remove(): Promise<void>
}

/** A real file system of this size. undefined where mounting is not allowed, because only root may. */
export function smallDisk(bytes: number): SmallDisk | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'weir-small-disk-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', folder], { stdio: 'ignore' })
  } catch {
    rmdirSync(folder)
    return undefined
  }
  // It removes the disk when its input ends, which also happens when this process is killed.
  const script = 'cat; umount --lazy "$1"; rmdir "$1"'
  const remover = spawn('sh', ['-c', script, 'sh', folder], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] })
  const removed = once(remover, 'exit')
  return {
    folder,
    resize: (size) => void execFileSync('mount', ['-o', `remount,size=${size}`, folder], { stdio: 'ignore' }),
    async remove() {
      remover.stdin?.end()
      await removed
    },
  }
}
