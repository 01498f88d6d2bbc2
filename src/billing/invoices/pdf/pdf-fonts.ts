import { readFileSync } from 'node:fs'
import type PDFDocument from 'pdfkit'
import { ApiError } from '../../../shared/errors.ts'

type Pdf = InstanceType<typeof PDFDocument>
export type Weight = 'regular' | 'bold'

/** Text in one font. */
export interface FontRun {
  readonly text: string
  readonly font: string
}

/** Chooses a font for every character of a text. */
export interface PdfFonts {
  runsOf(text: string, weight: Weight): readonly FontRun[]
  widthOf(text: string, weight: Weight, size: number): number
}

/** Tried in this order. Other scripts have one weight, which is enough for names and addresses. */
const OWN_FONTS = ['NotoSans', 'NotoSansHebrew', 'NotoSansArabic', 'NotoSansDevanagari', 'NotoSansThai'].concat(
  'NotoSansArmenian',
  'NotoSansGeorgian',
)
/** Characters without a glyph: joiners, direction marks, variation selectors, soft hyphens. */
const INVISIBLE = /^\p{Default_Ignorable_Code_Point}$/u

/** What this needs from a font that pdfkit has loaded. */
interface LoadedFont {
  readonly hasGlyphForCodePoint: (codePoint: number) => boolean
}

/** Loads Weir's fonts, and the operator's for scripts that these do not cover. */
export function loadFonts(page: Pdf, furtherFiles: readonly string[]): PdfFonts {
  const read = (name: string): Buffer => readFileSync(new URL(`fonts/${name}.ttf`, import.meta.url))
  page.registerFont('bold', read('NotoSans-Bold'))
  for (const name of OWN_FONTS) page.registerFont(name, read(`${name}-Regular`))
  for (const file of furtherFiles) registerFurther(page, file)
  const order = [...OWN_FONTS, ...furtherFiles]
  const loaded = new Map<string, LoadedFont>()
  /** Widths at size 1. Shaping a word takes longer than anything else here. */
  const widths = new Map<string, number>()

  function has(name: string, character: string): boolean {
    let font = loaded.get(name)
    if (!font) {
      page.font(name)
      font = loadedFont(page)
      loaded.set(name, font)
    }
    return INVISIBLE.test(character) || font.hasGlyphForCodePoint(character.codePointAt(0) ?? 0)
  }

  function fontOf(character: string, before: string | undefined): string {
    // Marks and punctuation stay in the font of the letters before them.
    if (before !== undefined && !/^[\p{Script=Latin}\p{Nd}]$/u.test(character) && has(before, character)) return before
    return order.find((name) => has(name, character)) ?? refuseMissing(character)
  }

  const fonts: PdfFonts = {
    runsOf(text, weight) {
      const runs: { text: string; font: string }[] = []
      for (const character of text) {
        const last = runs.at(-1)
        const font = fontOf(character, last?.font)
        if (last?.font === font) last.text += character
        else runs.push({ text: character, font })
      }
      return runs.map(({ text: part, font }) => ({
        text: part,
        font: weight === 'bold' && font === OWN_FONTS[0] ? 'bold' : font,
      }))
    },
    widthOf(text, weight, size) {
      const key = `${weight} ${text}`
      let width = widths.get(key)
      if (width === undefined) {
        const runs = fonts.runsOf(text, weight)
        width = runs.reduce((sum, run) => sum + page.font(run.font).fontSize(1).widthOfString(run.text), 0)
        widths.set(key, width)
      }
      return width * size
    },
  }
  return fonts
}

/** The current font, which pdfkit's types do not expose. */
function loadedFont(page: Pdf): LoadedFont {
  const inUse = (page as unknown as Readonly<Record<string, { readonly font: LoadedFont } | undefined>>)['_font']
  if (!inUse) throw new Error('pdfkit has no font in use')
  return inUse.font
}

/** A collection (.ttc) needs the name of one of its fonts: `NotoSansCJK-Regular.ttc#NotoSansCJKjp-Regular`. */
function registerFurther(page: Pdf, named: string): void {
  const [file = '', family] = named.split('#', 2)
  try {
    page.registerFont(named, file, family)
    page.font(named)
  } catch (cause) {
    const hint = /\.ttc$/i.test(named)
      ? 'name one of its fonts, as in FILE.ttc#NotoSansCJKjp-Regular'
      : (cause as Error).message
    const message = `The font ${named} (invoice.fonts in weir.yaml) cannot be used: ${hint}.`
    throw new ApiError('invalid_value', message, { param: 'invoice.fonts', cause })
  }
}

/** A character that no font has is never dropped silently. */
function refuseMissing(character: string): never {
  const message = `The PDF's fonts have no "${character}" (U+${codeOf(character)}). Name a font file that has it in invoice.fonts in weir.yaml, or use the HTML page, which any browser prints.`
  throw new ApiError('invalid_value', message, { param: 'invoice.fonts' })
}

function codeOf(character: string): string {
  return (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')
}
