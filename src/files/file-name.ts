/** Names that nobody can guess, with the content's type as their ending. */

const endings: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/webp': 'webp',
  'image/gif': 'gif',
}

const NAME = /^[0-9a-f]{32}\.(png|jpg|webp|gif|bin)$/

export function fileName(random: Buffer, contentType: string): string {
  return `${random.toString('hex')}.${endings[contentType] ?? 'bin'}`
}

/** The type that a name stands for; undefined for anything that `fileName` never made. */
export function contentTypeOf(name: string): string | undefined {
  const ending = NAME.exec(name)?.[1]
  if (ending === undefined) return undefined
  return Object.keys(endings).find((type) => endings[type] === ending) ?? 'application/octet-stream'
}
