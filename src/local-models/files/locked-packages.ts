/** The fields of one installed package in package-lock.json. */
interface LockEntry {
  /** Set where the package is installed under another name. */
  readonly name?: string
  readonly version?: string
  readonly integrity?: string
  readonly optional?: boolean
  readonly devOptional?: boolean
  readonly os?: readonly string[]
  readonly cpu?: readonly string[]
  readonly libc?: readonly string[]
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

export interface LockFile {
  readonly packages: Readonly<Record<string, LockEntry>>
}

export interface Platform {
  readonly os: string
  readonly cpu: string
  /** Undefined where there is only one C library. */
  readonly libc: 'glibc' | 'musl' | undefined
}

/** A package as the lock file pins it. */
export interface LockedPackage {
  readonly name: string
  readonly version: string
  /** The sha512 of the tarball in base64. */
  readonly sha512: string
  /** Where it is installed, such as `node_modules/a/node_modules/b`. */
  readonly path: string
}

/**
 * The packages that a workspace needs on a platform, besides those that are always installed with the gateway. Optional
 * peers are left out.
 */
export function lockedPackages(lock: LockFile, workspace: string, platform: Platform): readonly LockedPackage[] {
  const found = new Map<string, LockedPackage>()
  const visited = new Set<string>()
  function visit(from: string): void {
    const { dependencies = {}, optionalDependencies = {} } = lock.packages[from] ?? {}
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies })) {
      const path = pathFor(lock, from, name)
      const entry = path === undefined ? undefined : lock.packages[path]
      if (path === undefined || !entry || visited.has(path) || !runsOn(entry, platform)) continue
      visited.add(path)
      const { version, integrity, optional, devOptional } = entry
      if ((optional || devOptional) && version !== undefined && integrity?.startsWith('sha512-')) {
        found.set(path, { name: entry.name ?? name, version, sha512: integrity.slice('sha512-'.length), path })
      }
      visit(path)
    }
  }
  visit(workspace)
  return [...found.values()]
}

/** Where Node finds a package: next to the one that needs it, or in a folder above. */
function pathFor({ packages }: LockFile, from: string, name: string): string | undefined {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/')))) {
    const path = `${folder === '' ? '' : `${folder}/`}node_modules/${name}`
    if (packages[path]) return path
    if (folder === '') return undefined
  }
}

function runsOn({ os, cpu, libc }: LockEntry, platform: Platform): boolean {
  return (
    (os?.includes(platform.os) ?? true) &&
    (cpu?.includes(platform.cpu) ?? true) &&
    (libc === undefined || (platform.libc !== undefined && libc.includes(platform.libc)))
  )
}
