import fs, { existsSync, readlinkSync } from 'node:fs'
import fsPromises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { relative } from 'node:path'
import type { TestContext } from 'node:test'

type Call = (...args: unknown[]) => unknown

/**
 * What is done from now on to the files below a folder, in order: `write a.part`, `sync a.part`, `rename a.part to a`,
 * `sync .` for the folder itself. Several writes in a row are one. The calls are real. A step that begins before the one
 * before it has ended is `early`, since a crash may leave its effect alone.
 */
export async function diskSteps(t: TestContext, folder: string): Promise<string[]> {
  const handles = await fileHandles()
  const steps: string[] = []
  let underWay = 0

  const isBelow = (path: string): boolean => path === folder || path.startsWith(`${folder}/`)
  const named = (path: string): string => relative(folder, path) || '.'
  const pathOf = (handle: number): string => readlinkSync(`/proc/self/fd/${handle}`).replace(/ \(deleted\)$/, '')

  function step(what: string, work: () => unknown): unknown {
    const name = underWay > 0 ? `early ${what}` : what
    if (!what.startsWith('write ') || steps.at(-1) !== name) steps.push(name)
    const result = work()
    if (!(result instanceof Promise)) return result
    underWay++
    return result.finally(() => underWay--)
  }

  /** Replaces a function. `describe` returns the step, or undefined for a call that is none. */
  function trace(owner: object, name: string, describe: (self: unknown, args: unknown[]) => string | undefined): void {
    const original = (owner as Record<string, Call>)[name]!
    t.mock.method(owner as Record<string, Call>, name, function (this: unknown, ...args: unknown[]) {
      const what = describe(this, args)
      const work = (): unknown => original.apply(this, args)
      return what === undefined ? work() : step(what, work)
    })
  }

  const onPath =
    (verb: string) =>
    (_: unknown, [path]: unknown[]) =>
      typeof path === 'string' && isBelow(path) ? `${verb} ${named(path)}` : undefined
  const onTwo = (verb: string) => (_: unknown, args: unknown[]) => {
    const [from = '', to = ''] = args as string[]
    return isBelow(to) || isBelow(from) ? `${verb} ${named(from)} to ${named(to)}` : undefined
  }
  const removal = (self: unknown, [path]: unknown[]) =>
    typeof path === 'string' && existsSync(path) ? onPath('remove')(self, [path]) : undefined
  const newFolder = (self: unknown, [path]: unknown[]) =>
    typeof path === 'string' && !existsSync(path) ? onPath('make')(self, [path]) : undefined
  const onHandle =
    (verb: string) =>
    (_: unknown, [handle]: unknown[]) =>
      onPath(verb)(_, [pathOf(handle as number)])
  const onFileHandle = (verb: string) => (self: unknown) =>
    onPath(verb)(self, [pathOf((self as fsPromises.FileHandle).fd)])

  for (const name of ['fsyncSync', 'fdatasyncSync']) trace(fs, name, onHandle('sync'))
  trace(fs, 'writeSync', onHandle('write'))
  for (const owner of [fs, fsPromises]) {
    const suffix = owner === fs ? 'Sync' : ''
    trace(owner, `writeFile${suffix}`, onPath('write'))
    trace(owner, `rename${suffix}`, onTwo('rename'))
    trace(owner, `link${suffix}`, onTwo('link'))
    for (const name of ['rm', 'unlink']) trace(owner, `${name}${suffix}`, removal)
    trace(owner, `mkdir${suffix}`, newFolder)
  }
  // Modules that import a function of Node by its name get the replacement too.
  syncBuiltinESMExports()
  for (const name of ['sync', 'datasync']) trace(handles, name, onFileHandle('sync'))
  for (const name of ['write', 'writeFile']) trace(handles, name, onFileHandle('write'))
  t.after(() => {
    t.mock.restoreAll()
    syncBuiltinESMExports()
  })
  return steps
}

/** What all file handles have in common, which Node does not export. */
async function fileHandles(): Promise<object> {
  await using handle = await fsPromises.open('/proc/self/cmdline')
  return Object.getPrototypeOf(handle) as object
}
