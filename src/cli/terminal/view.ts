import { styleText } from 'node:util'

/** How text is shown: in colour or not, and how wide. Every view of a command gets one. */
export interface View {
  readonly paint: Paint
  /** Columns of the terminal. Infinity when the output is not a terminal: a program that reads it needs whole values. */
  readonly width: number
}

export type Tone = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan'
export type Paint = (tone: Tone, text: string) => string

const NARROWEST = 40

/** Node decides about colour: not to a pipe, nor with NO_COLOR or TERM=dumb, but always with FORCE_COLOR. */
export function viewOn(stream: NodeJS.WriteStream): View {
  return {
    paint: (tone, text) => styleText(tone, text, { stream, validateStream: true }),
    width: stream.isTTY ? Math.max(NARROWEST, stream.columns || 80) : Infinity,
  }
}
