import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { assertAccessible } from '../support/browser.ts'
import { consoleStage, type ConsoleStage, type Visitor } from '../support/console-stage.ts'
import { freePort } from '../support/free-port.ts'
import { CLIENT, identityProvider, type TestProvider } from '../support/identity-provider.ts'

/** People who sign in through a real OpenID provider, in a browser. */

let stage: ConsoleStage
let provider: TestProvider
let url: string
let operatorUrl: string

before(async () => {
  const [port, operatorPort] = [await freePort(), await freePort()]
  url = `http://127.0.0.1:${port}`
  operatorUrl = `http://127.0.0.1:${operatorPort}`
  provider = await identityProvider(
    [url, operatorUrl].map((it) => `${it}/console/api/sign-in/callback`),
    { isPublic: true },
  )
  stage = await consoleStage({
    server: { port, admin_port: operatorPort },
    sign_in: {
      oidc: {
        issuer: provider.issuer,
        client_id: CLIENT.id,
        name: 'Example ID',
        scopes: ['openid', 'profile', 'email', 'groups'],
        public_url: url,
        operator_url: operatorUrl,
        roles: [
          { group: 'staff', role: 'operator' },
          { group: 'accounting', role: 'finance' },
          { group: 'auditors', role: 'viewer' },
          { group: 'acme', role: 'member', workspace: 'default' },
          { group: 'acme', role: 'workspace_admin', workspace: 'other' },
        ],
      },
    },
  })
  await stage.weir.admin('POST', '/admin/v1/workspaces', { name: 'other' })
})
after(async () => {
  await stage.stop()
  await provider.close()
})

function be(...groups: readonly string[]): void {
  provider.person = { sub: 'ada', name: 'Ada Lovelace', email: 'ada@example.com', groups }
}

/** Through the page of the provider, and back. */
async function signIn({ page }: Pick<Visitor, 'page'>, address: string): Promise<void> {
  await page.goto(address)
  await page.getByRole('button', { name: 'Sign in with Example ID' }).click()
  await page.getByRole('button', { name: 'Continue as Ada Lovelace' }).click()
}

describe('a member', () => {
  it('signs in, returns to the page, uses the playground without a key, and changes the workspace', async () => {
    be('acme')
    const visitor = await stage.visitor({ isSignedIn: false })
    const { page, context } = visitor
    await page.goto(`${url}/console/keys`)
    await page.getByRole('button', { name: 'Sign in with Example ID' }).waitFor()
    await assertAccessible(page)
    await signIn(visitor, `${url}/console/keys`)
    await page.getByRole('heading', { name: 'Keys' }).waitFor()
    assert.equal(page.url(), `${url}/console/keys`)
    await page.getByText('Its administrators create and change them.').waitFor()
    assert.equal(await page.getByRole('button', { name: 'Create a key' }).count(), 0)
    assert.equal(await page.getByRole('link', { name: 'Invoices' }).count(), 0)
    await page.getByText('member: Ada Lovelace, ada@example.com').waitFor()
    await assertAccessible(page)

    stage.engine.script = { tokens: ['It ', 'is ', 'Paris.'] }
    await page.goto(`${url}/console/playground`)
    await page.getByLabel('Message').fill('Name the capital of France.')
    await page.keyboard.press('Enter')
    await page.getByText('It is Paris.').waitFor()

    await page.getByLabel('Workspace').selectOption('other')
    await page.getByText('workspace admin: Ada Lovelace').waitFor()
    await page.getByRole('link', { name: 'Invoices' }).waitFor()
    await page.getByRole('link', { name: 'Sessions' }).click()
    await page.getByRole('heading', { name: 'Sessions' }).waitFor()
    await page.getByText('this session').waitFor()
    await assertAccessible(page)
    assert.deepEqual(page.problems, [])
    await context.close()
  })

  it('reads on the page why they cannot sign in, and can use a key instead', async () => {
    be('without-a-role')
    const visitor = await stage.visitor({ isSignedIn: false })
    const { page, context } = visitor
    await signIn(visitor, `${url}/console`)
    await page.getByText('not in a group that may use this console').waitFor()
    await assertAccessible(page)
    await page.getByLabel('API key').fill(stage.weir.key)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    assert.equal(new URL(page.url()).pathname, '/console')
    await context.close()
  })

  it('whose session ends elsewhere signs in again in another tab, and what was typed stays', async () => {
    be('acme')
    const visitor = await stage.visitor({ isSignedIn: false })
    const { page, context } = visitor
    await signIn(visitor, `${url}/console/playground`)
    await page.getByLabel('Message').fill('Half a question')
    const { data } = (await (await stage.weir.admin('GET', '/admin/v1/sessions')).json()) as { data: { id: string }[] }
    await stage.weir.admin('DELETE', `/admin/v1/sessions/${data[0]?.id}`)
    await page.getByText('Your session has ended').waitFor()
    await assertAccessible(page)
    const [other] = await Promise.all([
      context.waitForEvent('page'),
      page.getByRole('button', { name: 'Sign in with Example ID' }).click(),
    ])
    // The provider still knows them, and asks nothing.
    await other.getByRole('heading', { name: 'Playground' }).waitFor()
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    await page.getByText('Your session has ended').waitFor({ state: 'detached' })
    assert.equal(await page.getByLabel('Message').inputValue(), 'Half a question')
    await context.close()
  })
})

describe('in the operator’s console', () => {
  it('a viewer sees everything and no action', async () => {
    be('auditors')
    const visitor = await stage.visitor({ isSignedIn: false })
    const { page, context } = visitor
    await signIn(visitor, `${operatorUrl}/console/workspaces`)
    await page.getByRole('heading', { name: 'Workspaces' }).waitFor()
    await page.getByText('You have the role viewer').waitFor()
    assert.equal(await page.getByRole('button', { name: 'Create a workspace' }).count(), 0)
    await page.getByRole('link', { name: 'other' }).click()
    await page.getByRole('heading', { name: 'other' }).waitFor()
    assert.equal(await page.getByRole('button', { name: 'Save' }).count(), 0)
    await page.getByRole('link', { name: 'Sessions' }).click()
    await page.getByRole('table').getByText('Ada Lovelace, ada@example.com').first().waitFor()
    assert.equal(await page.getByRole('button', { name: /^End the session/ }).count(), 0)
    await assertAccessible(page)
    assert.deepEqual(page.problems, [])
    await context.close()
  })

  it('finance begins with the usage, and has no pages about serving', async () => {
    be('accounting')
    const visitor = await stage.visitor({ isSignedIn: false })
    const { page, context } = visitor
    await signIn(visitor, `${operatorUrl}/console`)
    await page.getByRole('heading', { name: 'Usage' }).waitFor()
    const pages = await page.getByRole('navigation', { name: 'Pages' }).getByRole('link').allInnerTexts()
    assert.deepEqual(pages, ['Workspaces', 'Usage', 'Requests', 'Invoices', 'Reconcile'])
    await page.goto(`${operatorUrl}/console/workspaces/default`)
    await page.getByRole('heading', { name: 'The last 30 days' }).waitFor()
    assert.equal(await page.getByRole('heading', { name: 'Keys' }).count(), 0)
    await assertAccessible(page)
    assert.deepEqual(page.problems, [])
    await context.close()
  })

  it('an operator ends a session, and the audit log has their name', async () => {
    be('staff', 'acme')
    const member = await stage.visitor({ isSignedIn: false })
    await signIn(member, `${url}/console/models`)
    await member.page.getByRole('heading', { name: 'Models' }).waitFor()
    const visitor = await stage.visitor({ isSignedIn: false })
    const { page, context } = visitor
    await signIn(visitor, `${operatorUrl}/console/sessions`)
    await page.getByRole('heading', { name: 'Sessions' }).waitFor()
    await page.getByRole('row').filter({ hasText: 'default' }).first().getByRole('button').click()
    await assertAccessible(page)
    await page.getByRole('button', { name: 'End the session', exact: true }).click()
    await member.page.getByText('Your session has ended').waitFor()
    await page.getByRole('link', { name: 'Audit log' }).click()
    await page.getByText('operator (Ada Lovelace, ada@example.com) from').first().waitFor()
    assert.deepEqual(page.problems, [])
    await member.context.close()
    await context.close()
  })
})
