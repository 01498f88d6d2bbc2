/** Languages by ISO-639-1 code, and by the English names that speech models use. */

const english = new Intl.DisplayNames(['en'], { type: 'language', fallback: 'none' })

/** Whisper's names, which other servers copied, where they differ from Unicode's. */
const whisperNames: Readonly<Record<string, string>> = {
  bn: 'bengali',
  mi: 'maori',
  my: 'myanmar',
  nn: 'nynorsk',
  tl: 'tagalog',
}

export function isLanguageCode(text: string): boolean {
  return /^[a-z]{2}$/.test(text) && english.of(text) !== undefined
}

/** "en", "en-US" and "English" all become "english". Unknown text is only trimmed and lower-cased. */
export function languageName(text: string): string {
  const lower = text.trim().toLowerCase()
  const code = /^([a-z]{2,3})(?:[-_]|$)/.exec(lower)?.[1]
  return (code && (whisperNames[code] ?? english.of(code)?.toLowerCase())) ?? lower
}
