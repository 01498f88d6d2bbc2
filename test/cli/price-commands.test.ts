import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { UsageError } from '../../src/cli/command.ts'
import { ApiError } from '../../src/shared/errors.ts'
import { booksStage, SLUG } from '../support/books-stage.ts'

describe('weir prices', () => {
  it('are set for a workspace and cleared again, and each action is audited', async (t) => {
    const { shown, audit, books } = await booksStage(t)
    await books.workspace('acme')
    const list = 'prices list --workspace acme'
    assert.equal(await shown(list), 'No prices of its own: the list prices apply.')
    assert.equal(
      await shown(
        'prices set --workspace acme --model test-8b --input-per-million 0.10 --cached-input-per-million 0.01',
      ),
      `acme now pays for ${SLUG}: A$0.10 in, A$0.01 cached, A$0.60 out per 1M.`,
    )
    assert.equal(
      await shown('prices set --workspace acme --model sd/images --image-prices 1024x1792=0.08,1024x1792:hd=0.12'),
      'acme now pays for sd/images: A$0.04 per image; A$0.08 per 1024x1792 image; A$0.12 per 1024x1792 hd image.',
    )
    assert.equal(
      await shown(list),
      `MODEL         PRICES (EXCLUDING GST)
meta/test-8b  A$0.10 in, A$0.01 cached, A$0.60 out per 1M
sd/images     A$0.04 per image
              A$0.08 per 1024x1792 image
              A$0.12 per 1024x1792 hd image`,
    )
    const own = { input_per_million: '0.10', output_per_million: '0.60', cached_input_per_million: '0.01' }
    const { object, data } = JSON.parse(await shown(`${list} --json`)) as { object: string; data: readonly object[] }
    assert.deepEqual([object, data[0]], ['list', { model: SLUG, pricing: own }])
    assert.equal(
      await shown(`prices clear --workspace acme --model ${SLUG}`),
      `acme pays the list prices for ${SLUG} again: A$0.20 in, A$0.05 cached, A$0.60 out per 1M.`,
    )
    assert.equal(
      await shown(`prices set --workspace acme --model ${SLUG} --output-per-million 9 --json`),
      `{"model":"${SLUG}","workspace":"acme","pricing":{"output_per_million":"9"}}`,
    )
    const image_prices = [
      { size: '1024x1792', per_image: '0.08' },
      { size: '1024x1792', quality: 'hd', per_image: '0.12' },
    ]
    assert.deepEqual(await audit(4), [
      ['setWorkspacePrice', `acme ${SLUG}`, { input_per_million: '0.10', cached_input_per_million: '0.01' }, 'done'],
      ['setWorkspacePrice', 'acme sd/images', { image_prices }, 'done'],
      ['clearWorkspacePrice', `acme ${SLUG}`, null, 'done'],
      ['setWorkspacePrice', `acme ${SLUG}`, { output_per_million: '9' }, 'done'],
    ])
    const entries = await books.store.auditLog({ limit: 4 })
    assert.deepEqual(JSON.parse(entries[3]?.before ?? ''), { pricing: null })
    assert.deepEqual(JSON.parse(entries[3]?.after ?? ''), { pricing: own })
    assert.deepEqual(JSON.parse(entries[1]?.before ?? ''), { pricing: own })
    assert.deepEqual(JSON.parse(entries[1]?.after ?? ''), { pricing: null })
  })

  it('refuses invalid arguments', async (t) => {
    const { failed, books } = await booksStage(t)
    await books.workspace('acme')
    const cases = {
      'prices list': '--workspace is required',
      'prices --workspace acme': 'choose an action: list, set or clear',
      'prices make --workspace acme': 'choose an action: list, set or clear',
      'prices list more --workspace acme': 'unexpected argument "more"; put names with spaces in quotes',
      'prices clear --workspace acme': '--model is required',
      'prices set --workspace acme --model x': 'give at least one price, such as --input-per-million 0.15',
    }
    for (const [line, message] of Object.entries(cases)) assert.deepEqual(await failed(line), [UsageError, message])
    assert.deepEqual(await failed('prices clear --workspace acme --model no/such'), [
      ApiError,
      "The model 'no/such' is not in the catalog.",
    ])
    const form = '--image-prices takes SIZE[:QUALITY]=PRICE, such as 1024x1792:hd=0.12; image_prices'
    for (const list of ['nonsense', '1024x1024', '1024x1024=', '=1']) {
      const [error, message] = await failed(`prices set --workspace acme --model sd/images --image-prices ${list}`)
      assert.equal(error, UsageError)
      assert.ok(String(message).startsWith(form), String(message))
    }
    const twice = await failed('prices set --workspace acme --model sd/images --image-prices 64x64=1,64x64=2')
    assert.equal(twice[0], UsageError)
    assert.match(String(twice[1]), /^\S+ must be /)
    assert.equal((await failed(`prices set --workspace acme --model ${SLUG} --output-per-million x`))[0], UsageError)
  })
})
