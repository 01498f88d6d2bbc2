import { LocationProvider, Route, Router } from 'preact-iso/router'
import { isSignedOut } from '../shared/client.ts'
import { Icon } from '../shared/icon.tsx'
import {
  aiModelIcon,
  bellIcon,
  checklistIcon,
  cpuIcon,
  creditCardIcon,
  graphIcon,
  homeIcon,
  keyIcon,
  logIcon,
  organizationIcon,
  packageIcon,
  pulseIcon,
  serverIcon,
  signOutIcon,
  stackIcon,
} from '../shared/icons.ts'
import { Opening } from '../shared/opening.tsx'
import { Empty, PageHead } from '../shared/parts.tsx'
import { Shell } from '../shared/shell.tsx'
import { SignIn } from '../shared/sign-in.tsx'
import { AlertsPage } from './pages/alerts.tsx'
import { AuditPage } from './pages/audit.tsx'
import { CatalogPage } from './pages/catalog.tsx'
import { DraftsPage } from './pages/drafts.tsx'
import { EnginesPage } from './pages/engines.tsx'
import { InvoicePage, InvoicesPage } from './pages/invoices.tsx'
import { KeysPage } from './pages/keys.tsx'
import { LocalModelsPage } from './pages/local-models.tsx'
import { ModelPage } from './pages/model.tsx'
import { OverviewPage } from './pages/overview.tsx'
import { QueuePage } from './pages/queue.tsx'
import { QueuesPage } from './pages/queues.tsx'
import { ReconcilePage } from './pages/reconcile.tsx'
import { ReplicasPage } from './pages/replicas.tsx'
import { RequestPage, RequestsPage } from './pages/requests.tsx'
import { UsagePage } from './pages/usage.tsx'
import { WorkspacePage } from './pages/workspace.tsx'
import { WorkspacesPage } from './pages/workspaces.tsx'
import { placeFinder } from './places.ts'
import { isSignedIn, linkProblem, signIn, signOut } from './session.ts'

const pages = [
  { path: '/console', title: 'Overview', icon: homeIcon },
  { path: '/console/queues', title: 'Queues', icon: stackIcon, heading: 'Serving' },
  { path: '/console/engines', title: 'Engines', icon: cpuIcon },
  { path: '/console/models', title: 'Models', icon: aiModelIcon },
  { path: '/console/replicas', title: 'Replicas', icon: serverIcon },
  { path: '/console/catalog', title: 'Catalog', icon: packageIcon },
  { path: '/console/workspaces', title: 'Workspaces', icon: organizationIcon, heading: 'Customers' },
  { path: '/console/keys', title: 'Keys', icon: keyIcon },
  { path: '/console/usage', title: 'Usage', icon: graphIcon },
  { path: '/console/requests', title: 'Requests', icon: pulseIcon },
  { path: '/console/invoices', title: 'Invoices', icon: creditCardIcon, heading: 'Accounts' },
  { path: '/console/reconcile', title: 'Reconcile', icon: checklistIcon },
  { path: '/console/alerts', title: 'Alerts', icon: bellIcon },
  { path: '/console/audit', title: 'Audit log', icon: logIcon },
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
        finder={placeFinder}
        foot={
          <button type="button" onClick={() => void signOut()}>
            <Icon of={signOutIcon} />
            Sign out
          </button>
        }
      >
        <Router>
          <Route path="/console" component={OverviewPage} />
          <Route path="/console/queues" component={QueuesPage} />
          <Route path="/console/queues/:lane+" component={QueuePage} />
          <Route path="/console/engines" component={EnginesPage} />
          <Route path="/console/models" component={LocalModelsPage} />
          <Route path="/console/models/:model+" component={ModelPage} />
          <Route path="/console/replicas" component={ReplicasPage} />
          <Route path="/console/catalog" component={CatalogPage} />
          <Route path="/console/workspaces" component={WorkspacesPage} />
          <Route path="/console/workspaces/:name" component={WorkspacePage} />
          <Route path="/console/keys" component={KeysPage} />
          <Route path="/console/usage" component={UsagePage} />
          <Route path="/console/requests" component={RequestsPage} />
          <Route path="/console/requests/:id" component={RequestPage} />
          <Route path="/console/invoices" component={InvoicesPage} />
          <Route path="/console/invoices/drafts" component={DraftsPage} />
          <Route path="/console/invoices/:number" component={InvoicePage} />
          <Route path="/console/reconcile" component={ReconcilePage} />
          <Route path="/console/alerts" component={AlertsPage} />
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
