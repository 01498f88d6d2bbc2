import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** One deliberate break of a source file: `find` stands there exactly once. */
export interface Mutation {
  readonly name: string
  readonly find: string
  readonly replace: string
}

/** Loads broken copies of a module, so that tests can show that they would notice. */
export function mutantsOf<Module>(moduleUrl: URL) {
  const directory = mkdtemp(join(tmpdir(), 'weir-mutants-'))

  async function load(mutation?: Mutation): Promise<Module> {
    let text = await readFile(moduleUrl, 'utf8')
    if (mutation !== undefined) {
      assert.equal(text.split(mutation.find).length, 2, 'the text to break stands in the source exactly once')
      text = text.replace(mutation.find, () => mutation.replace)
    }
    const importing = text.replace(/from '(\.[^']+)'/g, (_, path: string) => `from '${new URL(path, moduleUrl).href}'`)
    const file = join(await directory, `${crypto.randomUUID()}.ts`)
    await writeFile(file, importing)
    return import(pathToFileURL(file).href) as Promise<Module>
  }

  async function remove(): Promise<void> {
    await rm(await directory, { recursive: true })
  }

  return { load, remove }
}
