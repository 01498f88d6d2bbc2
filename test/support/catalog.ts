import { openCatalog, type Catalog } from '../../src/catalog/catalog.ts'
import { parseCatalog } from '../../src/catalog/file.ts'

/** The catalog of a file with these models. */
export function catalogOf(...models: readonly object[]): Promise<Catalog> {
  const read = () => parseCatalog(JSON.stringify({ models }), 'weir.yaml', () => 'secret')
  return openCatalog({ file: undefined, read }, async () => () => {})
}
