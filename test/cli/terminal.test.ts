import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { audText, decimalsOf, durationText, pricesText, usageText } from '../../src/cli/terminal/amounts.ts'
import { progressBar } from '../../src/cli/terminal/progress.ts'
import { bytesText } from '../../src/shared/bytes-text.ts'
import { openScreen } from '../../src/cli/terminal/screen.ts'
import { renderFields, renderTable, shorten, type Column } from '../../src/cli/terminal/table.ts'
import { dayText, minuteText, secondText } from '../../src/cli/terminal/times.ts'
import { viewOn } from '../../src/cli/terminal/view.ts'
import { noUsage } from '../../src/billing/rating/rating.ts'
import { plainView } from '../support/terminal.ts'

interface Fruit {
  readonly name: string
  readonly weight: string
  readonly origin: string | null
}

const columns: readonly Column<Fruit>[] = [
  { title: 'NAME', cell: ({ name }) => name },
  { title: 'WEIGHT', cell: ({ weight }) => weight, align: 'right' },
  { title: 'ORIGIN', cell: ({ origin }) => origin, mayShrink: true },
]
const fruits: readonly Fruit[] = [
  { name: 'apple', weight: '180', origin: 'Tasmania, in the valley of the Huon' },
  { name: 'watermelon', weight: '9000', origin: null },
]

describe('a table', () => {
  it('aligns its columns, marks missing values, and ends no line with spaces', () => {
    assert.equal(
      renderTable(fruits, columns, plainView(80)),
      [
        'NAME        WEIGHT  ORIGIN',
        'apple          180  Tasmania, in the valley of the Huon',
        'watermelon    9000  -',
      ].join('\n'),
    )
  })

  it('omits empty columns, and reports that there is nothing', () => {
    assert.equal(renderTable(fruits.slice(1), columns, plainView(80)), 'NAME        WEIGHT\nwatermelon    9000')
    assert.equal(renderTable([], columns, plainView(80)), '(none)')
  })

  it('truncates only columns that allow it on a narrow terminal', () => {
    assert.equal(
      renderTable(fruits, columns, plainView(40)),
      ['NAME        WEIGHT  ORIGIN', 'apple          180  Tasmania, in the va…', 'watermelon    9000  -'].join('\n'),
    )
  })

  it('never truncates what the next command needs, however wide it is', () => {
    const key = { name: 'key_c0c12074def1425f90928138', weight: '1', origin: 'made for the website' }
    assert.equal(
      renderTable([key], columns, plainView(48)),
      'NAME                          WEIGHT  ORIGIN\nkey_c0c12074def1425f90928138       1  made for …',
    )
  })

  it('gives the first column a line of its own when the rest does not fit beside it', () => {
    assert.equal(
      renderTable(fruits, columns, plainView(24)),
      ['NAME', '  WEIGHT  ORIGIN', 'apple', '     180  Tasmania, in …', 'watermelon', '    9000  -'].join('\n'),
    )
  })
})

describe('a painted table', () => {
  const marked = { paint: (tone: string, text: string): string => `<${tone} ${text}>`, width: 31 }
  const toned: readonly Column<Fruit>[] = [
    { title: 'NAME', cell: ({ name }) => name, tone: ({ name }) => (name === 'apple' ? 'green' : undefined) },
    { title: 'WEIGHT', cell: ({ weight }) => weight, align: 'right', tone: () => 'red' },
    { title: 'ORIGIN', cell: ({ origin }) => origin, mayShrink: true },
  ]

  it('paints the text of a cell and not its padding, and has a line below a row', () => {
    const below = ({ name }: Fruit): string | undefined => (name === 'apple' ? 'sour' : undefined)
    assert.equal(
      renderTable(fruits, toned, marked, below),
      [
        '<bold NAME>        <bold WEIGHT>  <bold ORIGIN>',
        '<green apple>          <red 180>  Tasmania, …',
        '  <dim sour>',
        'watermelon    <red 9000>  -',
      ].join('\n'),
    )
  })

  it('shrinks the widest column first, and none below eight letters', () => {
    const wide: readonly Column<readonly string[]>[] = [0, 1, 2].map((index) => ({
      title: `T${index}`,
      cell: (row) => row[index] ?? null,
      mayShrink: index < 2,
    }))
    const rows = [['123456789012', '1234567890', '1']]
    const lines = (width: number): readonly string[] => renderTable(rows, wide, plainView(width)).split('\n')
    assert.deepEqual(
      [28, 27, 26, 24, 22, 21].map((width) => lines(width).at(-1)),
      [
        '123456789012  1234567890  1',
        '1234567890…  1234567890  1',
        '123456789…  1234567890  1',
        '12345678…  12345678…  1',
        '1234567…  1234567…  1',
        '  1234567890  1',
      ],
    )
    assert.deepEqual(lines(27).length, 2)
    assert.deepEqual(lines(21), ['T0', '  T1          T2', '123456789012', '  1234567890  1'])
  })

  it('is as wide as the terminal, at least 40, and unlimited elsewhere', () => {
    const width = (stream: object): number => viewOn(stream as NodeJS.WriteStream).width
    assert.deepEqual(
      [{ columns: 100 }, { isTTY: true, columns: 100 }, { isTTY: true }, { isTTY: true, columns: 39 }].map(width),
      [Infinity, 100, 80, 40],
    )
  })

  it('of one thing has a name and a value in each line, and leaves out what is empty', () => {
    const fields = [
      ['ID', '7'],
      ['NAME', 'a'],
      ['LONGEST', null],
      ['NONE', ''],
    ] as const
    assert.equal(renderFields(fields, marked), '<dim ID  >  7\n<dim NAME>  a')
    assert.equal(renderFields([['', 'a']], marked), '<dim >  a')
    assert.deepEqual(
      [5, 4, 3, 1, 0].map((limit) => shorten('abcd', limit)),
      ['abcd', 'abcd', 'ab…', '…', '…'],
    )
  })
})

describe('amounts', () => {
  it('of a column have as many decimals as the most precise one, at least two', () => {
    assert.deepEqual([[], [1_000_000_000_000n], [1_234_000_000_000n, 1_500_000n]].map(decimalsOf), [2, 2, 7])
  })

  it('are exact, in A$, with separated thousands', () => {
    assert.equal(audText(1_234_567_500_000_000_000n), 'A$1,234,567.50')
    assert.equal(audText(150_000n), 'A$0.00000015')
    assert.equal(audText(-20_000_000_000n), '-A$0.02')
  })

  it('of prices have the unit of the charge', () => {
    const chat = { input_per_million: '0.20', output_per_million: '0.60', cached_input_per_million: '0.05' }
    assert.equal(pricesText(chat), 'A$0.20 in, A$0.05 cached, A$0.60 out per 1M')
    const images = { input_per_million: '0.00', output_per_million: '0.00', per_image: '0.04' }
    assert.equal(pricesText(images), 'A$0.04 per image')
    const sizes = { ...images, image_prices: [{ size: '1024x1792', quality: 'hd', per_image: '0.12' }] }
    assert.equal(pricesText(sizes), 'A$0.04 per image; A$0.12 per 1024x1792 hd image')
    assert.equal(pricesText({ per_audio_minute: '0.006' }), 'A$0.006 per minute')
    assert.equal(pricesText({ input_per_million: '0.00', output_per_million: '0.00' }), 'free')
    assert.equal(pricesText({ ...chat, input_per_million: '0.00' }), 'A$0.60 out per 1M')
    assert.equal(pricesText({ input_per_million: '0.20' }), 'A$0.20 in per 1M')
    assert.equal(pricesText({ image_prices: [{ size: '1x1', per_image: '1' }] }), 'A$1 per 1x1 image')
  })

  it('of usage have the unit of the bill', () => {
    const tokens = { ...noUsage, inputTokens: 12_500, cachedInputTokens: 4, outputTokens: 3 }
    assert.equal(usageText(tokens), '12,500 (4 cached) in, 3 out')
    assert.equal(usageText({ ...noUsage, inputTokens: 1, cachedInputTokens: 1 }), '1 (1 cached) in')
    assert.equal(usageText({ ...noUsage, inputTokens: 1 }), '1 in')
    assert.equal(usageText({ ...noUsage, outputTokens: 1 }), '1 out')
    assert.deepEqual(
      [-2, -1, 1, 2].map((images) => usageText({ ...noUsage, images })),
      ['-2 images', '-1 image', '1 image', '2 images'],
    )
    assert.equal(usageText({ ...noUsage, audioMs: 1, capacityMs: 1 }), '1 ms, 1 ms reserved')
    assert.equal(usageText({ ...noUsage, capacityMs: 0 }), 'nothing')
    assert.equal(usageText({ ...noUsage, audioMs: 63_200 }), '63.2 s')
    assert.equal(usageText({ ...noUsage, capacityMs: 2_678_400_000 }), '744 h reserved')
    assert.equal(usageText(noUsage), 'nothing')
  })

  it('of time and memory have the most readable unit', () => {
    assert.deepEqual([12, 63_200, 750_000, 90_000_000].map(durationText), ['12 ms', '63.2 s', '12.5 min', '25 h'])
    assert.deepEqual([999.4, 1000, 599_940, 600_000, 35_999_000, 36_000_000, -1000].map(durationText), [
      '999 ms',
      '1 s',
      '599.9 s',
      '10 min',
      '600 min',
      '10 h',
      '-1 s',
    ])
    const below = [1, 999_999, 9_949_999, 999_499_999].map(bytesText)
    assert.deepEqual(below, ['1 KB', '1000 KB', '9.9 MB', '999 MB'])
    const from = [1_000_000, 10_000_000, 1_000_000_000].map(bytesText)
    assert.deepEqual(from, ['1.0 MB', '10 MB', '1.0 GB'])
  })
})

describe('times', () => {
  it('are in Sydney’s time, like the ledger’s', () => {
    // 10 hours ahead of UTC in winter, 11 in summer.
    assert.equal(minuteText('2026-07-01T15:30:59.999Z'), '2026-07-02 01:30')
    assert.equal(minuteText(Date.UTC(2026, 11, 31, 13, 30)), '2027-01-01 00:30')
    assert.deepEqual([dayText('2026-12-31T13:00:00Z'), dayText(null)], ['2027-01-01', null])
    assert.deepEqual(
      [minuteText(null), secondText(1), secondText('1970-01-01T00:00:01Z')],
      [null, '1970-01-01 10:00:00', '1970-01-01 10:00:01'],
    )
  })
})

describe('a progress bar', () => {
  it('shows how much of a model is downloaded, and gets shorter on a narrow terminal', () => {
    const progress = { slug: 'openai/whisper-tiny', receivedBytes: 11_000_000, totalBytes: 44_000_000 }
    assert.equal(progressBar(progress), 'openai/whisper-tiny  █████░░░░░░░░░░░░░░░  11 of 44 MB')
    assert.equal(progressBar(progress, 42), 'openai/whisper-tiny  ██░░░░░░  11 of 44 MB')
    assert.equal(progressBar(progress, 30), 'openai/whisper-tiny  11 of 44 MB')
    const [narrowest, narrower] = [39, 38].map((width) => progressBar(progress, width))
    assert.deepEqual(
      [narrowest, narrower],
      ['openai/whisper-tiny  █░░░░  11 of 44 MB', 'openai/whisper-tiny  11 of 44 MB'],
    )
    const bar = (receivedBytes: number, totalBytes?: number) => progressBar({ slug: 'a', receivedBytes, totalBytes })
    assert.deepEqual(
      [bar(1_500_000), bar(0, 1_000_000), bar(2_000_000, 1_000_000)],
      [`a  ${'░'.repeat(20)}  2 MB`, `a  ${'░'.repeat(20)}  0 of 1 MB`, `a  ${'█'.repeat(20)}  2 of 1 MB`],
    )
  })
})

describe('a screen', () => {
  /** A terminal that keeps its rows as a person sees them, and wraps long lines. */
  function emulator(columns: number) {
    let rows: string[] = ['']
    const listeners = new Set<() => void>()
    return {
      columns,
      on: (_event: 'resize', listener: () => void) => listeners.add(listener),
      off: (_event: 'resize', listener: () => void) => listeners.delete(listener),
      write(text: string) {
        // oxlint-disable-next-line no-control-regex
        for (const [token] of text.matchAll(/\u001B\[(\d+)A|\u001B\[0J|\r|\n|[^\u001B\r\n]+/g)) {
          const up = token.endsWith('A') && token.startsWith('\u001B') ? token.slice(2, -1) : undefined
          // Everything below the cursor is cleared right after it moves up, so that the rows may go at once.
          if (up !== undefined) rows = [...rows.slice(0, -1 - Number(up)), '']
          else if (token === '\n') rows.push('')
          else if (token !== '\r' && token !== '\u001B[0J') rows[rows.length - 1] += token
        }
      },
      rows: () => rows,
      resize(this: { columns: number }, to: number) {
        this.columns = to
        rows = rows.flatMap((row) => row.match(new RegExp(`.{1,${to}}`, 'g')) ?? [''])
        for (const listener of listeners) listener()
      },
    }
  }

  it('keeps its block at the bottom while lines are printed', () => {
    const terminal = emulator(80)
    const screen = openScreen(terminal, { hasBlock: true })
    screen.setBlock(['fetching 10 %'])
    screen.write('first line\n')
    screen.setBlock(['fetching 20 %'])
    screen.write('second line\nthird line\n')
    assert.deepEqual(terminal.rows(), ['first line', 'second line', 'third line', 'fetching 20 %', ''])
    screen.close()
    assert.deepEqual(terminal.rows(), ['first line', 'second line', 'third line', ''])
  })

  it('removes all of a block that wraps because the terminal became narrower', () => {
    const terminal = emulator(40)
    const screen = openScreen(terminal, { hasBlock: true })
    screen.write('a line\n')
    screen.setBlock(['a block that is thirty-odd long', 'and its second line'])
    terminal.resize(20)
    assert.deepEqual(terminal.rows(), ['a line', 'a block that is th…', 'and its second line', ''])
  })

  it('writes nothing if nothing changes, and does not listen after it is closed', () => {
    const written: string[] = []
    const listeners = new Set<() => void>()
    const terminal = {
      write: (text: string) => written.push(text),
      on: (_event: 'resize', listener: () => void) => listeners.add(listener),
      off: (_event: 'resize', listener: () => void) => listeners.delete(listener),
    }
    const screen = openScreen(terminal, { hasBlock: true })
    screen.setBlock([])
    for (const listener of listeners) listener()
    screen.setBlock(['', 'x'.repeat(80)])
    screen.setBlock(['', 'x'.repeat(80)])
    screen.close()
    assert.deepEqual(written, [`\n${'x'.repeat(78)}…\n`, '\r\u001B[2A\u001B[0J'])
    assert.equal(listeners.size, 0)
  })

  it('shows no block on a terminal that cannot move its cursor', () => {
    const terminal = emulator(80)
    const screen = openScreen(terminal, { hasBlock: false })
    screen.setBlock(['fetching 10 %'])
    screen.write('a line\n')
    assert.deepEqual(terminal.rows(), ['a line', ''])
  })
})
