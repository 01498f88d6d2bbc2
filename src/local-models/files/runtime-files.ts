import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { extract } from 'tar'
import { isInstalled as isPackageThere, runtimeBytes } from '../installed.ts'
import { downloadChecked } from './checked-download.ts'
import { sizeOf } from './download.ts'
import { fileHash } from './file-hash.ts'
import { withFileLock } from './file-lock.ts'
import { lockedPackages, type LockedPackage, type LockFile, type Platform } from './locked-packages.ts'
import { isBeingWritten, throttled, type FilesState, type PullOptions } from './model-files.ts'
import { tarballAddress } from './npm-configuration.ts'

/** Its name in progress reports and logs. */
export const RUNTIME_NAME = 'runtime of local models'

/** The folder of Weir, with its package-lock.json. */
export const INSTALLATION = join(import.meta.dirname, '../../..')
const WORKSPACE = 'packages/local-models'
const PARALLEL_DOWNLOADS = 6

export interface RuntimeFiles {
  isPresent(): boolean
  stateOf(): FilesState
  pull(options?: PullOptions): Promise<void>
}

/**
 * The packages that `packages/local-models` needs to run models, as package-lock.json pins them. npm installs them in the
 * folder of the gateway; a service that was installed without them fetches them into the folder of the package.
 */
export function runtimeFiles({
  environment,
  installation = INSTALLATION,
}: {
  readonly environment: NodeJS.ProcessEnv
  readonly installation?: string
}): RuntimeFiles {
  const workspace = join(installation, WORKSPACE)
  const fetching = join(workspace, '.fetching')
  const downloads = join(fetching, 'downloads')
  // Read on first use: most services do not need it.
  let read: readonly LockedPackage[] | undefined
  const packages = (): readonly LockedPackage[] => (read ??= isPackageThere ? packagesIn(installation) : [])

  const isPresent = (): boolean =>
    packages().every((it) => [installation, workspace].some((folder) => isInstalled(folder, it)))

  async function downloadAll({ onProgress, signal: stopped }: PullOptions): Promise<void> {
    const failed = new AbortController()
    const signal = stopped ? AbortSignal.any([stopped, failed.signal]) : failed.signal
    const received = new Map<string, number>()
    const report = throttled((receivedBytes, totalBytes) =>
      onProgress?.({ slug: RUNTIME_NAME, receivedBytes, totalBytes }),
    )
    const waiting = [...packages()]
    const download = async (): Promise<void> => {
      for (let next = waiting.shift(); next; next = waiting.shift()) {
        const { path } = next
        await downloadTarball(next, downloads, environment, signal, (bytes) => {
          received.set(path, bytes)
          const sum = [...received.values()].reduce((total, it) => total + it, 0)
          report(sum, Math.max(sum, runtimeBytes))
        })
      }
    }
    const downloading = Array.from({ length: PARALLEL_DOWNLOADS }, download)
    try {
      await Promise.all(downloading)
    } catch (error) {
      failed.abort()
      await Promise.allSettled(downloading)
      throw error
    }
  }

  /** Moves the packages into place in one step, so that an interrupted download leaves nothing that looks complete. */
  async function install(): Promise<void> {
    const staged = join(fetching, 'staged')
    await rm(staged, { recursive: true, force: true })
    for (const locked of packages()) {
      const folder = join(staged, locked.path)
      await mkdir(folder, { recursive: true })
      await extract({
        file: tarballPath(downloads, locked),
        cwd: folder,
        strip: 1,
        strict: true,
        filter: isForThisMachine,
      })
    }
    const target = join(workspace, 'node_modules')
    await rename(target, join(fetching, 'replaced')).catch(() => {})
    await rename(join(staged, 'node_modules'), target)
  }

  return {
    isPresent,
    stateOf() {
      if (isPresent()) return 'present'
      const isArriving =
        existsSync(downloads) && readdirSync(downloads).some((it) => isBeingWritten(join(downloads, it)))
      return isArriving ? 'arriving' : 'missing'
    },
    async pull(pullOptions = {}) {
      if (isPresent()) return
      try {
        await mkdir(downloads, { recursive: true })
        await withFileLock(join(fetching, 'lock'), pullOptions.signal, async () => {
          if (isPresent()) return
          await downloadAll(pullOptions)
          await install()
          for (const name of ['downloads', 'staged', 'replaced']) {
            await rm(join(fetching, name), { recursive: true, force: true })
          }
        })
      } catch (error) {
        if ((error as Error).name === 'AbortError') throw error
        const reason = (error as Error).message
        throw new Error(
          `Could not fetch the ${RUNTIME_NAME}: ${reason}. npm install --omit=dev in ${installation} installs it too.`,
          {
            cause: error,
          },
        )
      }
    },
  }
}

/** None without a lock file: the packager of such an installation decided what to include. */
function packagesIn(installation: string): readonly LockedPackage[] {
  const file = join(installation, 'package-lock.json')
  if (!existsSync(file)) return []
  return lockedPackages(JSON.parse(readFileSync(file, 'utf8')) as LockFile, WORKSPACE, thisPlatform())
}

function thisPlatform(): Platform {
  const { platform: os, arch: cpu } = process
  return { os, cpu, libc: os === 'linux' ? (usesGlibc() ? 'glibc' : 'musl') : undefined }
}

function usesGlibc(): boolean {
  // Without this, a report resolves the names of connected peers.
  Object.assign(process.report, { excludeNetwork: true })
  const report = process.report.getReport() as unknown as { readonly header: Readonly<Record<string, unknown>> }
  return report.header['glibcVersionRuntime'] !== undefined
}

function isInstalled(folder: string, { path, version }: LockedPackage): boolean {
  try {
    const { version: found } = JSON.parse(readFileSync(join(folder, path, 'package.json'), 'utf8')) as {
      version?: string
    }
    return found === version
  } catch {
    return false
  }
}

async function downloadTarball(
  locked: LockedPackage,
  downloads: string,
  environment: NodeJS.ProcessEnv,
  signal: AbortSignal | undefined,
  onBytes: (received: number) => void,
): Promise<void> {
  const partPath = tarballPath(downloads, locked)
  const check = async (): Promise<void> => {
    if ((await fileHash(partPath, 'sha512', 'base64')) !== locked.sha512) {
      throw new Error(`wrong hash of ${locked.name}@${locked.version}`)
    }
  }
  const isComplete = await check().then(
    () => true,
    () => false,
  )
  if (isComplete) return onBytes(await sizeOf(partPath))
  const address = await tarballAddress(locked.name, locked.version, environment)
  await downloadChecked(address, { partPath, onBytes, signal }, check)
}

function tarballPath(downloads: string, { name, version }: LockedPackage): string {
  return join(downloads, `${name.replaceAll('/', '+')}-${version}.tgz`)
}

/** onnxruntime-node has the binaries of every platform in one package, 245 MB of them for others. */
function isForThisMachine(path: string): boolean {
  const [, os, cpu] = /\/bin\/napi-v\d+\/([^/]+)(?:\/([^/]+))?/.exec(path) ?? []
  return (os ?? process.platform) === process.platform && (cpu ?? process.arch) === process.arch
}
