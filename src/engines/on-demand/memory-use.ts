import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import { runningIn, fileText } from './process-group.ts'

/**
 * How much memory an engine has taken: on NVIDIA GPUs if it is on one, else the most that it has had resident. Linux
 * only.
 */

const MEBIBYTE = 2 ** 20
const GPU_QUERY = ['--query-compute-apps=pid,used_memory', '--format=csv,noheader,nounits']
const GPU_QUERY_MS = 5000

/** In bytes; undefined: it cannot be measured. `leader`: the process group, whose leader is not part of the engine. */
export async function memoryOf(leader: number): Promise<number | undefined> {
  const resident = await residentOf(leader)
  if (resident.size === 0) return undefined
  const listing = await gpuListing()
  if (listing === undefined) return undefined
  const onGpu = gpuMemory(listing, new Set(resident.keys()), (pid) => existsSync(`/proc/${pid}`))
  if (onGpu !== 'none') return onGpu
  return resident.values().reduce((sum, bytes) => sum + bytes, 0)
}

/**
 * Reads what nvidia-smi prints. 'none': it uses no GPU. undefined: it may use one, but in a container the numbers of
 * processes may be those of the host, and some drivers do not say what a process takes.
 */
export function gpuMemory(
  listing: string,
  pids: ReadonlySet<number>,
  isVisible: (pid: number) => boolean,
): number | 'none' | undefined {
  const uses = listing
    .split('\n')
    .filter(Boolean)
    .map((line) => line.split(',').map(Number))
  const own = uses.filter(([pid = 0]) => pids.has(pid)).map(([, mebibytes = Number.NaN]) => mebibytes * MEBIBYTE)
  if (own.length === 0) return uses.every(([pid = 0]) => isVisible(pid)) ? 'none' : undefined
  const sum = own.reduce((total, bytes) => total + bytes, 0)
  return Number.isFinite(sum) ? sum : undefined
}

/** Empty without an NVIDIA GPU; undefined: there is one that does not answer. */
async function gpuListing(): Promise<string | undefined> {
  try {
    return (await promisify(execFile)('nvidia-smi', GPU_QUERY, { timeout: GPU_QUERY_MS })).stdout
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? '' : undefined
  }
}

/** The most that each process of the group has had in memory. */
async function residentOf(leader: number): Promise<ReadonlyMap<number, number>> {
  const resident = new Map<number, number>()
  for (const pid of await runningIn(leader)) {
    const peak = /^VmHWM:\s+(\d+) kB$/m.exec(await fileText(`/proc/${pid}/status`))
    if (peak && pid !== leader) resident.set(pid, Number(peak[1]) * 1024)
  }
  return resident
}
