/** Languages by their ISO-639-1 codes, and by the English names that speech models use. */

const english = new Intl.DisplayNames(['en'], { type: 'language', fallback: 'none' })

/** Where the names of Whisper, which everybody took over, are other than those of the Unicode project. */
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

/** "en", "en-US" and "English" are all "english"; what is neither code nor name stays as it is. */
export function languageName(text: string): string {
  const lower = text.trim().toLowerCase()
  const code = /^([a-z]{2,3})(?:[-_]|$)/.exec(lower)?.[1]
  return (code && (whisperNames[code] ?? english.of(code)?.toLowerCase())) ?? lower
}
