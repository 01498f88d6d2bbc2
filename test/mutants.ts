import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

/** One deliberate break of a source file, in which `find` occurs exactly once. */
export interface Mutation {
  readonly name: string
  /** The path from the module's folder to the file that breaks, if it is not the module itself. */
  readonly file?: string
  readonly find: string
  readonly replace: string
}

/** Loads broken copies of a module and the files beside it, so that tests can show that they would notice. */
export function mutantsOf<Module>(moduleUrl: URL) {
  const module = fileURLToPath(moduleUrl)
  const root = dirname(dirname(module))
  const directory = mkdtemp(join(tmpdir(), 'weir-mutants-'))

  async function load(...mutations: readonly Mutation[]): Promise<Module> {
    const copy = join(await directory, crypto.randomUUID())
    const brokenFile = ({ file }: Mutation): string => (file === undefined ? module : join(dirname(module), file))
    const folders = new Set([module, ...mutations.map(brokenFile)].map((path) => dirname(path)))
    for (const folder of folders) {
      const target = join(copy, relative(root, folder))
      await mkdir(target, { recursive: true })
      for (const file of await readdir(folder)) {
        if (!file.endsWith('.ts')) continue
        const path = join(folder, file)
        const breaks = mutations.filter((it) => brokenFile(it) === path)
        const text = breaks.reduce(breakText, await readFile(path, 'utf8'))
        await writeFile(join(target, file), importingFrom(text, folder, folders))
      }
    }
    return import(pathToFileURL(join(copy, relative(root, module))).href) as Promise<Module>
  }

  async function remove(): Promise<void> {
    await rm(await directory, { recursive: true })
  }

  return { load, remove }
}

/** Files of copied folders are imported from there; anything else from where it is. */
function importingFrom(text: string, folder: string, copied: ReadonlySet<string>): string {
  return text.replace(/from '(\.\.?\/[^']+)'/g, (original, path: string) => {
    const imported = join(folder, path)
    return copied.has(dirname(imported)) ? original : `from '${pathToFileURL(imported).href}'`
  })
}

function breakText(text: string, { find, replace }: Mutation): string {
  assert.equal(text.split(find).length, 2, `the text to break occurs exactly once: ${find}`)
  return text.replace(find, () => replace)
}
