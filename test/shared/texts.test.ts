import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { withoutPassword } from '../../src/shared/address-without-password.ts'
import { backoffMs } from '../../src/shared/backoff.ts'
import { ConfigError } from '../../src/shared/checked-yaml.ts'
import { counted } from '../../src/shared/counts.ts'
import { diskFailureOf, explainDiskFailure } from '../../src/shared/disk-failure.ts'
import { isEmailAddress } from '../../src/shared/email-address.ts'
import { formatAbn, parseAbn } from '../../src/shared/money/abn.ts'
import { exactDuration } from '../../src/shared/money/exact-duration.ts'
import { formatCents, parseSignedAud, toCents } from '../../src/shared/money/money.ts'
import { parseMonth, sydneyMidnight, sydneyMonth, sydneyTime, writtenDate } from '../../src/shared/money/sydney-time.ts'
import { endOf, periodOf } from '../../src/shared/period.ts'
import { RefusedWrite, writeInParts } from '../../src/shared/refused-write.ts'
import { isLive, pendingSettings, pendingText, settingText } from '../../src/shared/settings.ts'
import { withoutTrailing } from '../../src/shared/without-trailing.ts'

describe('a text for people', () => {
  it('counts things', () => {
    assert.deepEqual(
      [0, 1, 2, 12_500].map((value) => counted(value, 'key')),
      ['0 keys', '1 key', '2 keys', '12,500 keys'],
    )
    assert.equal(counted(2, 'entry', 'entries'), '2 entries')
  })

  it('of a configuration has its first mistake, and how many more there are', () => {
    const messageOf = (...mistakes: readonly string[]) => new ConfigError(mistakes).message
    assert.equal(messageOf('a'), 'a')
    assert.equal(messageOf('a', 'b'), 'a (and 1 more mistake: weir check lists them)')
    assert.equal(messageOf('a', 'b', 'c'), 'a (and 2 more mistakes: weir check lists them)')
  })

  it('has a duration in full, without the parts that are zero', () => {
    const lengths = [0n, 250n, 59_999n, 60_000n, 3_599_999n, 3_600_000n, 3_660_500n, 7_200_000_000n]
    assert.deepEqual(
      lengths.map((ms) => exactDuration(ms, 'h')),
      ['0 h', '0.25 s', '59.999 s', '1 min', '59 min 59.999 s', '1 h', '1 h 1 min 0.5 s', '2,000 h'],
    )
    assert.deepEqual(
      [0n, 3_600_000n, -61_000n].map((ms) => exactDuration(ms, 'min')),
      ['0 min', '60 min', '-1 min 1 s'],
    )
  })

  it('has amounts in cents, and reads amounts with a sign', () => {
    assert.deepEqual([4_999_999_999n, 5_000_000_000n, -5_000_000_000n].map(toCents), [0n, 1n, -1n])
    assert.deepEqual([formatCents(938_487n), formatCents(-5n)], ['9384.87', '-0.05'])
    assert.deepEqual(['1', '-1.5', '0.000000000001'].map(parseSignedAud), [10n ** 12n, -15n * 10n ** 11n, 1n])
    for (const text of ['', '1.', '--1', '1.0000000000001']) assert.throws(() => parseSignedAud(text), RangeError)
  })

  it('has an ABN only if its check digits are right', () => {
    assert.equal(parseAbn('51 824 753 556'), '51824753556')
    for (const text of ['51824753557', '5182475355', '01824753556', '15824753556'])
      assert.equal(parseAbn(text), undefined)
    assert.equal(formatAbn('51824753556'), '51 824 753 556')
  })

  it('has dates and times of Sydney', () => {
    for (let month = 1; month <= 12; month++) {
      const name = new Intl.DateTimeFormat('en-AU', { month: 'long' }).format(new Date(2026, month - 1, 5))
      assert.equal(writtenDate(`2026-${String(month).padStart(2, '0')}-05`), `5 ${name} 2026`)
    }
    assert.equal(sydneyTime(Date.UTC(2026, 5, 30, 14, 5, 9)), '2026-07-01 00:05:09')
  })

  it('has an address without its user, its password and its parameters', () => {
    assert.equal(withoutPassword('postgres://weir:secret@host:5432/weir?password=x'), 'postgres://host:5432/weir')
    assert.equal(withoutPassword('redis://:p@ss@host'), 'redis://host')
    for (const address of ['redis://host', '//host', 'host', 'a@b']) assert.equal(withoutPassword(address), address)
    assert.equal(withoutPassword('//@host'), '//host')
  })

  it('ends before a repeated character', () => {
    assert.deepEqual(
      ['0', '', '100', '1', '00'].map((text) => withoutTrailing(text, '0')),
      ['', '', '1', '1', ''],
    )
  })

  it('has the value of a setting, with large numbers grouped', () => {
    const texts = [null, 'x', 65_535, 65_536, [], ['a', 'b']].map(settingText)
    assert.deepEqual(texts, ['not set', 'x', '65535', '65,536', 'none', 'a, b'])
    const pending = { key: 'server.port', value: 18_099, needs: 'restart' } as const
    assert.equal(pendingText(pending), 'server.port is 18099 in the file: needs a restart')
  })

  it('explains a failure of the disk', () => {
    const failures = ['ENOSPC', 'EDQUOT', 'EROFS', 'EACCES', 'EPERM', 'ENOTDIR', 'EFBIG', 'EIO'].map(diskFailureOf)
    const [full, unwritable, failing] = ['full', 'unwritable', 'failing'] as const
    assert.deepEqual(failures, [full, full, unwritable, unwritable, unwritable, unwritable, failing, failing])
    for (const code of [undefined, 5, 'ENOENT', 'toString']) assert.equal(diskFailureOf(code), undefined)
    const texts = ([full, unwritable, failing] as const).map((failure) => explainDiskFailure(failure, 'x', 'EIO'))
    assert.deepEqual(
      texts.map((text) => /the disk is full|make it writable|check the disk/.exec(text)?.[0]),
      ['the disk is full', 'make it writable', 'check the disk'],
    )
  })
})

describe('a month in Sydney', () => {
  it('ends where the next one begins', () => {
    const december = { name: '2026-12', from: sydneyMidnight(2026, 12, 1), to: sydneyMidnight(2027, 1, 1) }
    assert.deepEqual(parseMonth('2026-12'), december)
    assert.deepEqual(sydneyMonth(december.to - 1), december)
    assert.deepEqual(sydneyMonth(december.from), december)
    for (const text of ['2026-13', '2026-00', '1999-12', '2026-1']) assert.equal(parseMonth(text), undefined)
    assert.throws(() => sydneyMonth(0), RangeError)
  })
})

describe('a period', () => {
  it('has the days that are named, and begins in 1970 at the earliest', () => {
    const day = { from: sydneyMidnight(2026, 10, 4), to: sydneyMidnight(2026, 10, 5) }
    assert.deepEqual(periodOf({ from: '2026-10-04', to: '2026-10-04' }), day)
    assert.deepEqual(periodOf({ from: '1969-12-31T00:00:00Z', to: null }), { from: 0, to: Number.MAX_SAFE_INTEGER })
    assert.equal(endOf('expires', '2026-10-04'), day.to)
    assert.throws(() => endOf('expires', 'soon'), { param: 'expires', message: /^'expires' must be a date/ })
  })
})

describe('an e-mail address', () => {
  it('has a name of up to 64 characters, parts of up to 63, and 254 in all', () => {
    const at = (name: number, ...parts: readonly number[]): boolean =>
      isEmailAddress(`${'n'.repeat(name)}@${parts.map((part) => 'd'.repeat(part)).join('.')}`)
    assert.deepEqual([at(64, 63), at(65, 3), at(1, 64), at(0, 3), at(1, 0)], [true, false, false, false, false])
    assert.deepEqual([at(64, 63, 63, 61), at(64, 63, 63, 62)], [true, false])
  })
})

describe('a setting of a running service', () => {
  const setting = (key: string, value: string, fingerprint?: string) => ({
    key,
    value,
    source: 'default',
    ...(fingerprint === undefined ? {} : { fingerprint }),
  })

  it('is pending if the file has another value, another secret, or none', () => {
    const inForce = [
      setting('log.level', 'info'),
      setting('secret', 'set', 'one'),
      setting('gone', 'x'),
      setting('same', 'x'),
    ]
    const written = [
      setting('log.level', 'warn'),
      setting('secret', 'set', 'other'),
      setting('same', 'x'),
      setting('new', 'y'),
    ]
    assert.deepEqual(pendingSettings(inForce, written), [
      { key: 'log.level', value: 'warn', needs: 'reload' },
      { key: 'secret', value: 'set', needs: 'restart' },
      { key: 'gone', value: null, needs: 'restart' },
      { key: 'new', value: 'y', needs: 'restart' },
    ])
  })

  it('is applied without a restart if it is one of four', () => {
    const live = [
      'rate_limit.requests_per_minute',
      'rate_limit.unauthenticated_per_minute',
      'server.drain_ms',
      'log.level',
    ]
    assert.ok(live.every(isLive))
    assert.deepEqual(['', 'server.port'].map(isLive), [false, false])
  })
})

describe('a write that is refused', () => {
  it('is repeated in halves, so that only the refused items are missing', async () => {
    const [written, refused]: [number[], number[]] = [[], []]
    const write = async (part: readonly number[]): Promise<void> => {
      if (part.some((item) => item % 5 === 0)) throw new RefusedWrite('no')
      written.push(...part)
    }
    const set = async (item: number): Promise<void> => void refused.push(item)
    await writeInParts([1, 2, 3, 4, 5, 6, 10], write, set)
    assert.deepEqual(
      [written, refused],
      [
        [1, 2, 3, 4, 6],
        [5, 10],
      ],
    )
    await assert.rejects(
      writeInParts([1, 2], () => Promise.reject(new Error('away')), set),
      /away/,
    )
    await assert.rejects(
      writeInParts([], () => Promise.reject(new RefusedWrite('no')), set),
      /no/,
    )
  })
})

describe('a backoff', () => {
  it('doubles with each failure, up to its maximum', () => {
    assert.deepEqual(
      [1, 2, 3, 4].map((failures) => backoffMs(failures, 100, 500)),
      [100, 200, 400, 500],
    )
  })
})
