import { shorten } from './table.ts'

/**
 * A terminal that several parts write to at once. Lines scroll above a block that stays at the bottom, such as the
 * progress of a download. Nothing tears the block: it is erased, the lines are written, and it is drawn again, all in
 * one write.
 */
export interface Screen {
  /** Writes whole lines. */
  write(text: string): void
  /** Replaces the block at the bottom; an empty list removes it. */
  setBlock(lines: readonly string[]): void
  close(): void
}

/** The part of a terminal that a screen needs. */
export interface Terminal {
  readonly columns?: number
  write(text: string): unknown
  on(event: 'resize', listener: () => void): unknown
  off(event: 'resize', listener: () => void): unknown
}

const CLEAR_TO_END = '\u001B[0J'
const cursorUp = (lines: number): string => (lines === 0 ? '' : `\u001B[${lines}A`)

export interface ScreenOptions {
  /** False for a terminal that cannot move its cursor. */
  readonly hasBlock: boolean
  /** Colours a line of the block. Its width is that of the plain line. */
  readonly paintBlock?: (line: string) => string
}

export function openScreen(terminal: Terminal, { hasBlock, paintBlock = (it) => it }: ScreenOptions): Screen {
  let block: readonly string[] = []
  let drawnWidths: readonly number[] = []

  /** A terminal that became narrower has wrapped the lines of the block, which then take several rows each. */
  function takeAway(): string {
    const rows = drawnWidths.reduce((sum, width) => sum + Math.max(1, Math.ceil(width / columns())), 0)
    return drawnWidths.length === 0 ? '' : `\r${cursorUp(rows)}${CLEAR_TO_END}`
  }

  function draw(): string {
    const lines = block.map((line) => shorten(line, columns() - 1))
    drawnWidths = lines.map((line) => line.length)
    return lines.map((line) => `${paintBlock(line)}\n`).join('')
  }

  function columns(): number {
    return terminal.columns || 80
  }

  function redraw(text: string): void {
    const whole = takeAway() + text + draw()
    if (whole !== '') terminal.write(whole)
  }

  const resized = (): void => redraw('')
  terminal.on('resize', resized)
  return {
    write: redraw,
    setBlock(lines) {
      if (!hasBlock || lines.join('\n') === block.join('\n')) return
      block = lines
      redraw('')
    },
    close() {
      terminal.off('resize', resized)
      block = []
      redraw('')
    },
  }
}
