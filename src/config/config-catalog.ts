import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseCatalog, toModels, type CatalogSource, type Secrets } from '../catalog/file.ts'
import { readConfigFile, type FileContent } from './config-file.ts'
import type { CheckedYaml } from '../shared/checked-yaml.ts'
import { defaultCatalog } from '../local-models/default-catalog.ts'

/** Where the catalog is: in weir.yaml, in a file of its own, or built in. A part of config.ts. */

/** `opened`: what is in the file, if there is one. */
export function catalogSource(
  file: string | undefined,
  opened: { readonly text: string; readonly yaml: CheckedYaml<FileContent> } | undefined,
  base: string,
  secrets: Secrets,
  modelsDirectory: string,
): CatalogSource {
  const { catalog } = opened?.yaml.data ?? {}
  if (catalog !== undefined) {
    const catalogFile = resolve(base, catalog)
    const parse = whenChanged((text) => parseCatalog(text, catalogFile, secrets))
    return { file: catalogFile, read: () => parse(readFileSync(catalogFile, 'utf8')) }
  }
  if (file === undefined) {
    return {
      file: undefined,
      read: () => parseCatalog(defaultCatalog(modelsDirectory), 'the default catalog', secrets),
    }
  }
  let unread = opened
  const parse = whenChanged((text) => {
    const yaml = unread?.text === text ? unread.yaml : readConfigFile(file, text)
    unread = undefined
    const models = toModels(yaml.data, yaml, secrets)
    yaml.requireCorrect()
    return models
  })
  return { file, read: () => parse(readFileSync(file, 'utf8')) }
}

/** Parsing a thousand models takes a large part of a start, which reads them to check them and to serve them. */
function whenChanged<Result>(parse: (text: string) => Result): (text: string) => Result {
  let last: { readonly text: string; readonly result: Result } | undefined
  return (text) => {
    if (last?.text !== text) last = { text, result: parse(text) }
    return last.result
  }
}
