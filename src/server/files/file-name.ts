/** Unguessable file names whose extension gives the content type. */

const extensions: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/webp': 'webp',
  'image/gif': 'gif',
}

const NAME = /^[0-9a-f]{32}\.(png|jpg|webp|gif|bin)$/

export function fileName(random: Buffer, contentType: string): string {
  return `${random.toString('hex')}.${extensions[contentType] ?? 'bin'}`
}

/** The content type of a file; undefined for a name that `fileName` did not make. */
export function contentTypeOf(name: string): string | undefined {
  const extension = NAME.exec(name)?.[1]
  if (extension === undefined) return undefined
  return Object.keys(extensions).find((type) => extensions[type] === extension) ?? 'application/octet-stream'
}
