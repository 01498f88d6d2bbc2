import { LocationProvider, Route, Router } from 'preact-iso/router'
import { isSignedOut } from '../shared/client.ts'
import { Opening } from '../shared/opening.tsx'
import { Empty, PageHead } from '../shared/parts.tsx'
import { Shell } from '../shared/shell.tsx'
import { SignIn } from '../shared/sign-in.tsx'
import { AuditPage } from './pages/audit.tsx'
import { CatalogPage } from './pages/catalog.tsx'
import { EnginesPage } from './pages/engines.tsx'
import { InvoicePage, InvoicesPage } from './pages/invoices.tsx'
import { KeysPage } from './pages/keys.tsx'
import { OverviewPage } from './pages/overview.tsx'
import { QueuePage } from './pages/queue.tsx'
import { QueuesPage } from './pages/queues.tsx'
import { ReconcilePage } from './pages/reconcile.tsx'
import { ReplicasPage } from './pages/replicas.tsx'
import { RequestPage, RequestsPage } from './pages/requests.tsx'
import { UsagePage } from './pages/usage.tsx'
import { WorkspacePage } from './pages/workspace.tsx'
import { WorkspacesPage } from './pages/workspaces.tsx'
import { isSignedIn, linkProblem, signIn, signOut } from './session.ts'

const pages = [
  { path: '/console', title: 'Overview' },
  { path: '/console/queues', title: 'Queues' },
  { path: '/console/engines', title: 'Engines' },
  { path: '/console/replicas', title: 'Replicas' },
  { path: '/console/catalog', title: 'Catalog' },
  { path: '/console/workspaces', title: 'Workspaces' },
  { path: '/console/keys', title: 'Keys' },
  { path: '/console/usage', title: 'Usage' },
  { path: '/console/requests', title: 'Requests' },
  { path: '/console/invoices', title: 'Invoices' },
  { path: '/console/reconcile', title: 'Reconcile' },
  { path: '/console/audit', title: 'Audit log' },
]

export function App() {
  if (isSignedIn.value === undefined) return <Opening />
  if (!isSignedIn.value) return <Enter hasEnded={false} />
  return (
    <LocationProvider scope="/console">
      {isSignedOut.value ? <Enter hasEnded /> : null}
      <Shell
        name="operator"
        pages={pages}
        foot={
          <button type="button" class="plain" onClick={() => void signOut()}>
            Sign out
          </button>
        }
      >
        <Router>
          <Route path="/console" component={OverviewPage} />
          <Route path="/console/queues" component={QueuesPage} />
          <Route path="/console/queues/:lane+" component={QueuePage} />
          <Route path="/console/engines" component={EnginesPage} />
          <Route path="/console/replicas" component={ReplicasPage} />
          <Route path="/console/catalog" component={CatalogPage} />
          <Route path="/console/workspaces" component={WorkspacesPage} />
          <Route path="/console/workspaces/:name" component={WorkspacePage} />
          <Route path="/console/keys" component={KeysPage} />
          <Route path="/console/usage" component={UsagePage} />
          <Route path="/console/requests" component={RequestsPage} />
          <Route path="/console/requests/:id" component={RequestPage} />
          <Route path="/console/invoices" component={InvoicesPage} />
          <Route path="/console/invoices/:number" component={InvoicePage} />
          <Route path="/console/reconcile" component={ReconcilePage} />
          <Route path="/console/audit" component={AuditPage} />
          <Route default component={NotFound} />
        </Router>
      </Shell>
    </LocationProvider>
  )
}

function Enter({ hasEnded }: { hasEnded: boolean }) {
  return (
    <SignIn
      title="Weir operator"
      about="Sign in with the operator token. It is in the file operator-token of the data directory, unless you chose one."
      label="Operator token"
      hasEnded={hasEnded}
      linkProblem={hasEnded ? undefined : linkProblem.value}
      enter={(token) => signIn({ token })}
    />
  )
}

function NotFound() {
  return (
    <>
      <PageHead title="Not found" />
      <Empty title="There is no such page">
        <a href="/console/queues">See the queues</a>
      </Empty>
    </>
  )
}
