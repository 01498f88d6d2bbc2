import { LocationProvider, Route, Router } from 'preact-iso'
import { isSignedOut } from '../shared/client.ts'
import { Empty, PageHead } from '../shared/parts.tsx'
import { Shell } from '../shared/shell.tsx'
import { SignIn } from '../shared/sign-in.tsx'
import { InvoicePage, InvoicesPage } from './pages/invoices.tsx'
import { KeysPage } from './pages/keys.tsx'
import { ModelPage } from './pages/model.tsx'
import { ModelsPage } from './pages/models.tsx'
import { PlaygroundPage } from './pages/playground.tsx'
import { RequestPage } from './pages/request.tsx'
import { UsagePage } from './pages/usage.tsx'
import { session, signIn, signOut } from './session.ts'

const pages = [
  { path: '/console/models', title: 'Models' },
  { path: '/console/playground', title: 'Playground' },
  { path: '/console/keys', title: 'Keys' },
  { path: '/console/usage', title: 'Usage' },
  { path: '/console/invoices', title: 'Invoices' },
]

export function App() {
  const current = session.value
  if (current === undefined) return null
  if (current === null || isSignedOut.value) {
    return (
      <SignIn
        title="Weir"
        about="Sign in with an API key of your workspace. The key is checked once and not kept in this browser."
        label="API key"
        hasEnded={current !== null}
        enter={(key) => signIn({ key })}
      />
    )
  }
  return (
    <LocationProvider scope="/console">
      <Shell
        name={current.workspace}
        pages={pages}
        foot={
          <button type="button" class="plain" onClick={() => void signOut()}>
            Sign out
          </button>
        }
      >
        <Router>
          <Route path="/console" component={ModelsPage} />
          <Route path="/console/models" component={ModelsPage} />
          <Route path="/console/models/:slug+" component={ModelPage} />
          <Route path="/console/playground" component={PlaygroundPage} />
          <Route path="/console/keys" component={KeysPage} />
          <Route path="/console/usage" component={UsagePage} />
          <Route path="/console/usage/:id" component={RequestPage} />
          <Route path="/console/invoices" component={InvoicesPage} />
          <Route path="/console/invoices/:number" component={InvoicePage} />
          <Route default component={NotFound} />
        </Router>
      </Shell>
    </LocationProvider>
  )
}

function NotFound() {
  return (
    <>
      <PageHead title="Not found" />
      <Empty title="There is no such page">
        <a href="/console/models">See the models</a>
      </Empty>
    </>
  )
}
