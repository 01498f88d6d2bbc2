import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

/** One deliberate break of a source file, in which `find` occurs exactly once. */
export interface Mutation {
  readonly name: string
  /** A file beside the module, if it is not the module itself that breaks. */
  readonly file?: string
  readonly find: string
  readonly replace: string
}

/** Loads broken copies of a module and the files beside it, so that tests can show that they would notice. */
export function mutantsOf<Module>(moduleUrl: URL) {
  const folder = new URL('.', moduleUrl)
  const module = basename(fileURLToPath(moduleUrl))
  const directory = mkdtemp(join(tmpdir(), 'weir-mutants-'))

  async function load(mutation?: Mutation): Promise<Module> {
    const broken = mutation?.file ?? module
    const copy = join(await directory, crypto.randomUUID())
    await mkdir(copy)
    for (const file of await readdir(folder)) {
      if (!file.endsWith('.ts')) continue
      const text = await readFile(new URL(file, folder), 'utf8')
      await writeFile(join(copy, file), importingFrom(mutation && file === broken ? breakText(text, mutation) : text))
    }
    return import(pathToFileURL(join(copy, module)).href) as Promise<Module>
  }

  /** Files beside the module are copied with it; anything else is imported from where it is. */
  function importingFrom(text: string): string {
    return text.replace(/from '(\.\.\/[^']+)'/g, (_, path: string) => `from '${new URL(path, folder).href}'`)
  }

  async function remove(): Promise<void> {
    await rm(await directory, { recursive: true })
  }

  return { load, remove }
}

function breakText(text: string, { find, replace }: Mutation): string {
  assert.equal(text.split(find).length, 2, `the text to break occurs exactly once: ${find}`)
  return text.replace(find, () => replace)
}
