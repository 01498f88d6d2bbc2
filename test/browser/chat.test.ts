import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Locator } from 'playwright-core'
import { assertAccessible } from '../support/browser.ts'
import { consoleStage, type ConsoleStage, type Visitor } from '../support/console-stage.ts'
import { png } from '../support/image-samples.ts'
import { eventually } from '../support/waiting.ts'
import { modelEntry } from '../support/weir.ts'

let stage: ConsoleStage
let visitor: Visitor
const HOSTILE = '<img src=x onerror="window.hacked=1">'

before(async () => {
  stage = await consoleStage()
  visitor = await stage.visitor()
})
after(async () => {
  assert.deepEqual(visitor.page.problems, [])
  await stage.stop()
})

/** What the newest request to the engine had as its messages. */
const sentMessages = (): readonly (readonly [role: string, content: unknown])[] => {
  const messages = stage.engine.calls.at(-1)?.body['messages'] as { role: string; content: unknown }[]
  return messages.map(({ role, content }) => [role, content])
}

const button = (name: string): Locator => visitor.page.getByRole('button', { name, exact: true })
const answers = (): Locator => visitor.page.getByRole('region', { name: 'Answer of' })

async function send(text: string, { page } = visitor): Promise<void> {
  await page.getByLabel('Message').fill(text)
  await page.keyboard.press('Enter')
}

/** Answers the question with this text, in one piece. */
async function ask(question: string, answer: string): Promise<void> {
  stage.engine.script = { tokens: [answer] }
  await send(question)
  await visitor.page.getByLabel('What the request took').last().getByText('Cost').waitFor()
}

describe('the chat', () => {
  it('streams an answer and shows what the ledger says it took, and the same request as code', async () => {
    const { page, go } = visitor
    stage.engine.script = { tokens: ['The ', 'weir ', HOSTILE], promptTokens: 20, cachedTokens: 8 }
    await go('/playground')
    await button('Settings').click()
    await page.getByLabel('System prompt').fill('Be brief.')
    await page.getByRole('slider', { name: 'Temperature' }).fill('0.5')
    assert.equal(await page.getByRole('spinbutton', { name: 'Temperature' }).inputValue(), '0.5')
    await assertAccessible(page)
    await page.keyboard.press('Escape')
    await send(HOSTILE)
    await page.getByText(`The weir ${HOSTILE}`).waitFor()
    const outcome = page.getByLabel('What the request took')
    for (const text of ['¢', 'Queue wait', 'First token', '20 tokens', '8 tokens', '3 tokens']) {
      await outcome.getByText(text).first().waitFor()
    }
    assert.equal(await page.evaluate('window.hacked'), undefined)
    assert.deepEqual(sentMessages(), [
      ['system', 'Be brief.'],
      ['user', HOSTILE],
    ])
    assert.equal(stage.engine.calls.at(-1)?.body['temperature'], 0.5)
    await button('Show code').click()
    const code = (await page.getByLabel('The request in curl').textContent()) ?? ''
    assert.ok(code.includes('"temperature": 0.5') && code.includes('Be brief.'))
    assert.ok(!code.includes('The weir'), 'the answer was not in the request')
    for (const language of ['Python', 'TypeScript'] as const) {
      await button(language).click()
      const sample = (await page.getByLabel(`The request in ${language}`).textContent()) ?? ''
      assert.match(sample, /OpenAI\(/)
      assert.ok(sample.includes(`"${stage.weir.service.url}/api/v1"`), 'the address of this page')
    }
    await assertAccessible(page)
  })

  it('stops, and the engine is free again', async () => {
    const { page, go } = visitor
    const held = Promise.withResolvers<void>()
    stage.engine.script = { tokens: ['One ', 'two '], hold: { afterTokens: 1, until: held.promise } }
    await go('/playground')
    const left = stage.engine.calls.filter(({ hasLeft }) => hasLeft).length
    await page.getByLabel('Message').fill('Count')
    await button('Send').click()
    await page.getByRole('log').getByText('One', { exact: true }).waitFor()
    await button('Stop').click()
    await page.getByText('Stopped.').waitFor()
    await stage.engine.left(left + 1)
    held.resolve()
    await page.getByLabel('What the request took').getByText('Cost').waitFor()
  })

  it('says what is wrong: with the form, and with the request', async () => {
    const { page, go } = visitor
    stage.engine.script = { refuse: { status: 500, body: { error: { message: 'broken' } } } }
    await go('/playground')
    await button('Settings').click()
    await page.getByLabel('Tools').fill('[{')
    await button('Close').click()
    await send('Hi')
    await page.locator('.field-problem').getByText('This is not valid JSON').waitFor()
    await page.getByLabel('Tools').fill('')
    await button('Close').click()
    await button('Send').click()
    await page.getByRole('log').locator('.notice.bad').getByText('The engine failed with status 500.').waitFor()
    assert.equal(await page.getByLabel('Message').inputValue(), 'Hi')
    await assertAccessible(page)
    // The question that was refused is replaced, and no model sees it.
    await ask('Hello', 'Good day')
    assert.deepEqual(sentMessages(), [['user', 'Hello']])
    assert.equal(await answers().count(), 1)
  })

  it('edits a question, and drops what was said after it', async () => {
    const { page, go } = visitor
    await go('/playground')
    await ask('First', 'One')
    await ask('Second', 'Two')
    assert.deepEqual(sentMessages(), [
      ['user', 'First'],
      ['assistant', 'One'],
      ['user', 'Second'],
    ])
    await button('Edit').first().click()
    await page.getByLabel('Edit the question').fill('Changed')
    await assertAccessible(page)
    stage.engine.script = { tokens: ['Other'] }
    await button('Ask again').click()
    await answers().getByText('Other').waitFor()
    assert.deepEqual(sentMessages(), [['user', 'Changed']])
    assert.equal(await answers().count(), 1)
    assert.equal(await page.getByText('Second').count(), 0)
  })

  it('generates an answer again, and copies it', async () => {
    const { page, go } = visitor
    await go('/playground')
    await ask('First', 'One')
    await ask('Second', 'Two')
    assert.equal(await button('Regenerate').count(), 1, 'of the last answer only')
    stage.engine.script = { tokens: ['**Three**'] }
    await button('Regenerate').click()
    await answers().last().getByText('Three').waitFor()
    assert.equal(await page.getByText('Two').count(), 0)
    assert.deepEqual(sentMessages().at(-1), ['user', 'Second'])
    await answers().last().getByRole('button', { name: 'Copy' }).click()
    await answers().last().getByText('Copied').waitFor()
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), '**Three**')
  })

  it('folds thoughts away, and shows tools, calls and JSON readably', async () => {
    const { page, go } = visitor
    const parameters = {
      type: 'object',
      properties: { city: { type: 'string', description: 'Its name' } },
      required: ['city'],
    }
    const tools = [
      { type: 'function', function: { name: 'weather', description: 'The weather in a city', parameters } },
    ]
    stage.engine.script = {
      reasoning: ['They want ', 'the weather.'],
      toolCalls: [{ id: 'call_1', name: 'weather', arguments: ['{"city":', '"Sydney"}'] }],
    }
    await go('/playground')
    await button('Settings').click()
    await page.getByRole('textbox', { name: 'Tools' }).fill(JSON.stringify(tools))
    const seen = page.getByRole('region', { name: 'Tools as the model sees them' })
    assert.equal(
      (await seen.innerText()).replaceAll(/\s+/g, ' '),
      'weather The weather in a city city string, required Its name',
    )
    await assertAccessible(page)
    await button('Close').click()
    await send('How is the weather?')
    const call = answers().getByRole('region', { name: 'Calls weather' })
    await call.waitFor()
    await eventually('the call is whole', async () => (await call.innerText()) === '{\n  "city": "Sydney"\n}')
    assert.equal(await page.getByText('They want the weather.').isVisible(), false)
    await page.getByText('Thoughts').click()
    await page.getByText('They want the weather.').waitFor()
    stage.engine.script = { tokens: ['{"degrees":', '20}'] }
    await send('As JSON')
    const json = answers().getByRole('region', { name: 'JSON' })
    await json.waitFor()
    assert.equal(await json.innerText(), '{\n  "degrees": 20\n}')
    await assertAccessible(page)
  })

  it('sends the results of tools back, and goes on with them, also after a reload', async () => {
    const { page, go } = visitor
    const calls = ['Sydney', 'Perth'].map((city, index) => ({
      id: `call_${city}`,
      name: index === 0 ? 'weather' : 'time',
      arguments: [JSON.stringify({ city })],
    }))
    stage.engine.script = { toolCalls: calls }
    await go('/playground')
    await send('How is the weather?')
    await page.getByLabel('Result of weather').fill('{"degrees": 20}')
    await page.getByLabel('What the request took').getByText('Cost').waitFor()
    await page.reload()
    await page.getByLabel('Result of weather').fill('{"degrees": 20}')
    assert.equal(await button('Send the results').isDisabled(), true, 'the engine needs both')
    await page.getByLabel('Result of time').fill('noon')
    await assertAccessible(page)
    stage.engine.script = { tokens: ['Warm'] }
    await button('Send the results').click()
    await answers().getByText('Warm').waitFor()
    await page.getByRole('region', { name: 'Result of weather' }).getByText('20').waitFor()
    assert.equal(await page.getByLabel('Result of weather').locator('textarea').count(), 0)
    assert.deepEqual(stage.engine.calls.at(-1)?.body['messages'], [
      { role: 'user', content: 'How is the weather?' },
      {
        role: 'assistant',
        content: null,
        tool_calls: calls.map(({ id, name, arguments: [text] }) => ({
          id,
          type: 'function',
          function: { name, arguments: text },
        })),
      },
      { role: 'tool', tool_call_id: 'call_Sydney', content: '{"degrees": 20}' },
      { role: 'tool', tool_call_id: 'call_Perth', content: 'noon' },
    ])
    await ask('And tomorrow?', 'Cold')
    assert.deepEqual(
      sentMessages().map(([role]) => role),
      ['user', 'assistant', 'tool', 'tool', 'assistant', 'user'],
    )
  })

  it('follows the answer until the reader scrolls up, and the composer stays in place', async () => {
    const { page, go } = visitor
    const held = Promise.withResolvers<void>()
    const lines = Array.from({ length: 60 }, (_, index) => `Line ${index}\n\n`)
    stage.engine.script = { tokens: [...lines, 'The last'], hold: { afterTokens: 50, until: held.promise } }
    await go('/playground')
    const composer = page.getByLabel('Message')
    const log = page.getByRole('log')
    const place = await composer.boundingBox()
    const gap = (): Promise<number> => log.evaluate((it) => it.scrollHeight - it.scrollTop - it.clientHeight)
    await send('Count')
    await log.getByText('Line 49').waitFor()
    await eventually('the end is in sight', async () => (await gap()) < 40)
    assert.deepEqual(await composer.boundingBox(), place)
    await log.evaluate((it) => it.scrollTo({ top: 0 }))
    await button('To the end ↓').waitFor()
    held.resolve()
    await page.getByLabel('What the request took').getByText('Cost').waitFor()
    assert.equal(await log.evaluate((it) => it.scrollTop), 0)
    await assertAccessible(page)
    await button('To the end ↓').click()
    await eventually('the end is in sight', async () => (await gap()) < 40)
    assert.equal(await button('To the end ↓').count(), 0)
  })
})

describe('Markdown in an answer', () => {
  it('has headings, lists, tables and coloured code with a button that copies it', async () => {
    const { page, go } = visitor
    const code = 'def weir(height):\n    return height * 2  # metres'
    const text = [
      '# Title',
      'Some **bold** and `inline` text &amp; a [link](https://example.org/page).',
      '- one\n- two\n  1. nested',
      '| a | b |\n|---|---:|\n| 1 | 2 |',
      `\`\`\`python\n${code}\n\`\`\``,
      '> quoted',
    ].join('\n\n')
    await go('/playground')
    await ask('Show', text)
    const answer = answers().first()
    await answer.getByRole('heading', { name: 'Title' }).waitFor()
    await answer.getByText('Some bold and inline text & a link.').waitFor()
    const link = answer.getByRole('link', { name: 'link', exact: true })
    assert.equal(await link.getAttribute('href'), 'https://example.org/page')
    assert.equal(await link.getAttribute('rel'), 'noopener noreferrer')
    assert.equal(await answer.getByRole('listitem').count(), 3)
    await answer.getByRole('cell', { name: '2' }).waitFor()
    assert.equal(await answer.locator('.hljs-keyword').first().innerText(), 'def')
    const card = answer.locator('.code-card')
    assert.equal(await card.locator('pre').innerText(), code)
    await card.getByRole('button', { name: 'Copy' }).click()
    await card.getByText('Copied').waitFor()
    assert.equal(await page.evaluate('navigator.clipboard.readText()'), code)
    await assertAccessible(page)
  })

  it('runs nothing, loads nothing, and leads nowhere dangerous', async () => {
    const { page, context, go } = visitor
    const requests: string[] = []
    context.on('request', (request) => {
      if (!request.url().startsWith(stage.weir.service.url) && !request.url().startsWith('data:'))
        requests.push(request.url())
    })
    const hostile = [
      HOSTILE,
      '<script>window.hacked=1</script>',
      '<svg onload="window.hacked=1"></svg>',
      '<a href="javascript:window.hacked=1" onclick="window.hacked=1">click</a>',
      '[one](javascript:window.hacked=1)',
      '[two](JaVaScRiPt:window.hacked=1)',
      '[three](data:text/html,<script>window.hacked=1</script>)',
      '[four](&#106;avascript:window.hacked=1)',
      '[five](/console/keys)',
      '<javascript:window.hacked=1>',
      '![six](https://example.org/pixel.png)',
      '![seven](javascript:window.hacked=1)',
      '![" onerror="window.hacked=1](x)',
      '[eight]\n\n[eight]: javascript:window.hacked=1',
      '```"><img src=x onerror=window.hacked=1>\ncode\n```',
      '&lt;img src=x onerror=window.hacked=1&gt;',
    ].join('\n\n')
    await go('/playground')
    await ask('Attack', hostile)
    const answer = answers().first()
    await answer.locator('.markdown').waitFor()
    await answer.getByText('<script>window.hacked=1</script>').waitFor()
    for (const name of ['one', 'two', 'three', 'four', 'five', 'eight']) {
      await answer.getByText(name, { exact: true }).click()
    }
    const addresses = await answer
      .locator('.markdown a')
      .evaluateAll((links) => links.map((link) => link.getAttribute('href')))
    assert.deepEqual(addresses, ['https://example.org/pixel.png'])
    for (const tag of ['img', 'script', 'svg:not(.icon svg)', 'iframe', '[onclick]', '[onerror]', '[style]']) {
      assert.equal(await answer.locator(`.markdown ${tag}`).count(), 0, tag)
    }
    assert.equal(await page.evaluate('window.hacked'), undefined)
    assert.deepEqual(requests, [])
    assert.match(page.url(), /\/console\/playground/)
  })

  it('nested without end is still shown', async () => {
    const { page, go } = visitor
    await go('/playground')
    await ask('Nest', `${'> '.repeat(3000)}deep ${'['.repeat(3000)}`)
    await answers().getByText('deep').waitFor()
    assert.deepEqual(page.problems, [])
  })
})

describe('the history of the chat', () => {
  it('survives a reload, a change of the model, and leaving the page', async () => {
    const { page, go } = visitor
    await go('/playground')
    await ask('Who are you?', 'I am **Test**')
    await page.reload()
    await answers().getByText('I am Test').waitFor()
    await page.getByLabel('What the request took').getByText('Cost').waitFor()
    await page.getByRole('combobox').first().selectOption({ label: 'Vision 3B' })
    await answers().getByText('I am Test').waitFor()
    await ask('And now?', 'I am Vision')
    assert.deepEqual(sentMessages(), [
      ['user', 'Who are you?'],
      ['assistant', 'I am **Test**'],
      ['user', 'And now?'],
    ])
    await page.getByRole('region', { name: 'Answer of Test 8B' }).waitFor()
    await page.getByRole('region', { name: 'Answer of Vision 3B' }).waitFor()
    await page.getByRole('link', { name: 'Keys' }).click()
    await page.goBack()
    await answers().getByText('I am Vision').waitFor()
  })

  it('keeps what had arrived when the page was closed', async () => {
    const { page, go } = visitor
    const held = Promise.withResolvers<void>()
    stage.engine.script = { tokens: ['Half ', 'whole'], hold: { afterTokens: 1, until: held.promise } }
    await go('/playground')
    await send('Tell me')
    await answers().getByText('Half').waitFor()
    const kept = async (): Promise<boolean> =>
      JSON.stringify(await page.evaluate(readKept('conversations'))).includes('Half ')
    await eventually('it is kept', kept)
    await page.reload()
    await answers().getByText('The page was left before the answer ended.').waitFor()
    await answers().getByText('Half').waitFor()
    held.resolve()
  })

  it('is deleted one by one, or all at once', async () => {
    const { page, context, go } = await stage.visitor()
    await go('/playground')
    for (const text of ['Apples', 'Pears']) {
      stage.engine.script = { tokens: ['Yes'] }
      await send(text, { page, context, go })
      await page.getByLabel('What the request took').getByText('Cost').waitFor()
      await page.getByRole('button', { name: 'New chat' }).click()
      await page.getByText('Write a message below.').waitFor()
    }
    await page.getByRole('button', { name: 'History' }).click()
    await page.getByRole('button', { name: /^Apples/ }).click()
    await page.getByRole('log').getByText('Apples').waitFor()
    await page.getByRole('button', { name: 'History' }).click()
    await assertAccessible(page)
    await page.getByRole('button', { name: 'Delete Apples' }).click()
    await page.getByRole('button', { name: 'Delete Apples' }).waitFor({ state: 'detached' })
    await page.getByText('Write a message below.').waitFor()
    await page.getByRole('button', { name: 'Delete all' }).click()
    await page
      .getByRole('dialog', { name: 'Delete all conversations?' })
      .getByRole('button', { name: 'Delete all' })
      .click()
    await page.getByText('No conversations yet').waitFor()
    assert.deepEqual(await page.evaluate(readKept('conversations')), [[]], 'nothing but an empty list')
    assert.deepEqual(page.problems, [])
    await context.close()
  })

  it('drops the oldest when it is full', async () => {
    const { page, context, go } = await stage.visitor()
    await go('/playground')
    stage.engine.script = { tokens: ['Yes'] }
    await send('The first', { page, context, go })
    await page.getByLabel('What the request took').getByText('Cost').waitFor()
    await page.evaluate(fillKept(99))
    await page.getByRole('button', { name: 'New chat' }).click()
    await page.getByText('Write a message below.').waitFor()
    await send('The newest', { page, context, go })
    await page.getByLabel('What the request took').getByText('Cost').waitFor()
    await page.getByRole('button', { name: 'History' }).click()
    await page.getByRole('button', { name: /^The newest/ }).waitFor()
    await eventually('100 are left', async () => (await page.locator('.history li').count()) === 100)
    assert.equal(await page.getByRole('button', { name: /^The first/ }).count(), 0)
    assert.ok(!JSON.stringify(await page.evaluate(readKept('conversations'))).includes('The first'))
    await context.close()
  })
})

/** Everything in a store of the playground. */
const readKept = (name: string): string => `new Promise((resolve, reject) => {
  const opening = indexedDB.open('weir-${name}')
  opening.onerror = () => reject(opening.error)
  opening.onsuccess = () => {
    const reading = opening.result.transaction('kept').objectStore('kept').getAll()
    reading.onsuccess = () => { opening.result.close(); resolve(reading.result) }
  }
})`

/** Puts so many newer conversations into the list. */
const fillKept = (count: number): string => `new Promise((resolve, reject) => {
  const opening = indexedDB.open('weir-conversations')
  opening.onerror = () => reject(opening.error)
  opening.onsuccess = () => {
    const store = opening.result.transaction('kept', 'readwrite').objectStore('kept')
    const keys = store.getAllKeys()
    keys.onsuccess = () => {
      const key = keys.result.find((it) => it.length === 1)
      const reading = store.get(key)
      reading.onsuccess = () => {
        const more = Array.from({ length: ${count} }, (_, index) => ({ id: 'more-' + index, at: Date.now(), size: 10, facts: { title: 'More ' + index } }))
        store.put([...more, ...reading.result], key).onsuccess = () => { opening.result.close(); resolve() }
      }
    }
  }
})`

describe('models side by side', () => {
  it('get the same question, and each has its own figures and goes on with its own answers', async () => {
    const { page, go } = visitor
    await go('/playground')
    await button('Compare').click()
    await page.getByLabel('Model 2').selectOption({ label: 'Vision 3B' })
    await assertAccessible(page)
    const calls = stage.engine.calls.length
    const script = (): void => {
      stage.engine.script = (call) => {
        // Which model was asked is not in the call: the second that arrives gets another answer.
        const isSecond = stage.engine.calls.indexOf(call) % 2 !== calls % 2
        return isSecond ? { tokens: ['Bee', 's'], promptTokens: 7 } : { tokens: ['Ants'], promptTokens: 5 }
      }
    }
    script()
    await send('Which animals?')
    for (const name of ['Test 8B', 'Vision 3B']) {
      const figures = page.getByRole('region', { name: `Answer of ${name}` }).getByLabel('What the request took')
      for (const text of ['Cost', 'First token', 'Input', 'Output'])
        await figures.getByText(text, { exact: true }).waitFor()
    }
    const [first = '', second = ''] = await answers().allInnerTexts()
    assert.deepEqual(new Set([first, second].map((text) => /Ants|Bees/.exec(text)?.[0])), new Set(['Ants', 'Bees']))
    const bees = first.includes('Bees') ? first : second
    assert.match(bees, /Speed\s+[\d.,]+ tokens\/s/)
    assert.match(bees, /Input\s+7 tokens/)
    assert.match(bees, /Output\s+2 tokens/)
    assert.match(bees, /Cost\s+0\.\d+¢/)
    const [left, right] = [await answers().nth(0).boundingBox(), await answers().nth(1).boundingBox()]
    assert.ok(left && right && left.y === right.y && left.x + left.width <= right.x, 'side by side')
    await assertAccessible(page)

    script()
    await send('And now?')
    await eventually('both are asked', () => stage.engine.calls.length === calls + 4)
    const seen = stage.engine.calls.slice(-2).map(({ body }) => (body['messages'] as { content: string }[])[1]?.content)
    assert.deepEqual(new Set(seen), new Set(['Ants', 'Bees']))
    await page.getByLabel('What the request took').nth(3).getByText('Cost').waitFor()
    await page.reload()
    await page.getByLabel('What the request took').nth(3).getByText('Cost').waitFor()
    assert.equal(await page.getByLabel('Model 2').inputValue(), 'meta/vision')
    await button('Remove Vision 3B').click()
    await page.getByLabel('Model 2').waitFor({ state: 'detached' })
  })

  it('are up to four, and a phone shows them below each other with every action in sight', async () => {
    const more = ['meta/third', 'meta/fourth', 'meta/fifth'].map((id) =>
      modelEntry([stage.engine.url], { id, aliases: [], name: id }),
    )
    const own = await consoleStage({ models: more })
    stage.engine.script = { tokens: ['Yes'] }
    own.engine.script = { tokens: ['Yes'] }
    try {
      const desktop = await own.visitor()
      await desktop.go('/playground?model=meta/test-8b')
      await desktop.page.getByRole('button', { name: 'Compare' }).click()
      for (const count of [2, 3, 4]) {
        await desktop.page.getByRole('combobox', { name: `Model ${count}` }).waitFor()
        if (count < 4) await desktop.page.getByRole('button', { name: 'Add a model' }).click()
      }
      assert.equal(await desktop.page.getByRole('button', { name: 'Add a model' }).count(), 0)
      await send('Are you there?', desktop)
      await desktop.page.getByLabel('What the request took').nth(3).getByText('Cost').waitFor()
      const tops = await desktop.page
        .locator('.answer')
        .evaluateAll((all) => all.map((it) => it.getBoundingClientRect().top))
      assert.deepEqual([tops.length, new Set(tops).size], [4, 1], 'all in one row')
      await assertAccessible(desktop.page)

      const phone = await own.visitor({ phone: true, dark: true })
      await phone.go(new URL(desktop.page.url()).search.replace(/&chat=.*/, '').replace(/^/, '/playground'))
      await send('Are you there?', phone)
      await phone.page.getByLabel('What the request took').nth(3).getByText('Cost').waitFor()
      const boxes = await phone.page.getByRole('button').evaluateAll((all) =>
        all
          .filter((it) => it.checkVisibility())
          .map((it) => ({
            name: it.textContent,
            x: it.getBoundingClientRect().x,
            width: it.getBoundingClientRect().width,
          })),
      )
      assert.ok(boxes.length > 10)
      for (const { name, x, width } of boxes) assert.ok(x >= 0 && x + width <= 390, `${name} at ${x}`)
      const composer = await phone.page.getByLabel('Message').boundingBox()
      assert.ok(composer && composer.y + composer.height <= 844, 'the composer is in sight')
      const [width, shown] = await phone.page.evaluate<[number, number]>('[document.body.scrollWidth, innerWidth]')
      assert.ok(width <= shown)
      await assertAccessible(phone.page)
      assert.deepEqual([...desktop.page.problems, ...phone.page.problems], [])
    } finally {
      await own.stop()
    }
  })
})

describe('images in a message', () => {
  const image = png()
  const attached = (): readonly string[] => {
    const [, content] = sentMessages().at(-1) ?? []
    return (content as { type: string }[]).map(({ type }) => type)
  }

  it('are chosen, pasted or dropped, and can be taken out again', async () => {
    const { page, go } = visitor
    stage.engine.script = { tokens: ['A ', 'cat'] }
    await go('/playground?model=meta/vision')
    await page.getByLabel('Images').setInputFiles({ name: `${HOSTILE}.png`, mimeType: 'image/png', buffer: image })
    await page.getByAltText('Image 1 of the message').waitFor()
    for (const [event, count] of [
      ["new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true })", 2],
      ["new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true })", 3],
    ] as const) {
      await page.evaluate(`{
        const data = new DataTransfer()
        data.items.add(new File([Uint8Array.from(${JSON.stringify([...image])})], 'cat.png', { type: 'image/png' }))
        document.querySelector('.composer textarea').dispatchEvent(${event})
      }`)
      await page.getByAltText(`Image ${count} of the message`).waitFor()
    }
    await assertAccessible(page)
    await page.getByRole('button', { name: 'Remove image 3' }).click()
    await send('What is it?')
    await page.getByText('A cat').waitFor()
    assert.deepEqual(attached(), ['text', 'image_url', 'image_url'])
    assert.ok(stage.engine.calls.at(-1)?.rawBody.includes('data:image/png;base64,'))
    await page.reload()
    await page.getByAltText('Attached image 2').waitFor()
  })

  it('are not sent to a model that does not see', async () => {
    const { page, go } = visitor
    await go('/playground?model=meta/test-8b')
    assert.equal(await page.getByLabel('Images').count(), 0)
    await go('/playground?model=meta/vision')
    await page.getByLabel('Images').setInputFiles({ name: 'a.png', mimeType: 'image/png', buffer: image })
    await page.getByAltText('Image 1 of the message').waitFor()
    await ask('What is it?', 'A cat')
    await page.getByRole('combobox').first().selectOption({ label: 'Test 8B' })
    await ask('And now?', 'A dog')
    assert.deepEqual(sentMessages()[0], ['user', 'What is it?'])
  })
})
