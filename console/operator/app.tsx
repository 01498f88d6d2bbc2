import { LocationProvider, Route, Router } from 'preact-iso/router'
import type { Operations } from '../generated/operator-api.ts'
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
  peopleIcon,
  pulseIcon,
  serverIcon,
  signOutIcon,
  stackIcon,
  tasklistIcon,
} from '../shared/icons.ts'
import { Opening } from '../shared/opening.tsx'
import { Empty, PageHead } from '../shared/parts.tsx'
import { Shell, type NavigationEntry } from '../shared/shell.tsx'
import { SignIn } from '../shared/sign-in.tsx'
import { AlertsPage } from './pages/alerts.tsx'
import { AuditPage } from './pages/audit.tsx'
import { BatchesPage, BatchPage } from './pages/batches.tsx'
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
import { SessionsPage } from './pages/sessions.tsx'
import { current, findSession, linkProblem, may, signIn, signOut } from './session.tsx'

/** Each page with the operation that it shows, which the person must be allowed to call. */
const everyPage = [
  { path: '/console', title: 'Overview', icon: homeIcon, call: 'operatorHealth' },
  { path: '/console/queues', title: 'Queues', icon: stackIcon, heading: 'Serving', call: 'listQueues' },
  { path: '/console/batches', title: 'Batches', icon: tasklistIcon, call: 'listBatches' },
  { path: '/console/engines', title: 'Engines', icon: cpuIcon, call: 'listEngines' },
  { path: '/console/models', title: 'Models', icon: aiModelIcon, call: 'listLocalModels' },
  { path: '/console/replicas', title: 'Replicas', icon: serverIcon, call: 'listReplicas' },
  { path: '/console/catalog', title: 'Catalog', icon: packageIcon, call: 'previewCatalog' },
  {
    path: '/console/workspaces',
    title: 'Workspaces',
    icon: organizationIcon,
    heading: 'Customers',
    call: 'listWorkspaces',
  },
  { path: '/console/keys', title: 'Keys', icon: keyIcon, call: 'listKeys' },
  { path: '/console/usage', title: 'Usage', icon: graphIcon, call: 'usageReport' },
  { path: '/console/requests', title: 'Requests', icon: pulseIcon, call: 'listRequests' },
  { path: '/console/invoices', title: 'Invoices', icon: creditCardIcon, heading: 'Accounts', call: 'listInvoices' },
  { path: '/console/reconcile', title: 'Reconcile', icon: checklistIcon, call: 'reconcile' },
  { path: '/console/alerts', title: 'Alerts', icon: bellIcon, call: 'alertDeliveries' },
  { path: '/console/sessions', title: 'Sessions', icon: peopleIcon, call: 'listSessions' },
  { path: '/console/audit', title: 'Audit log', icon: logIcon, call: 'auditLog' },
] as const satisfies readonly (NavigationEntry & { readonly call: keyof Operations })[]

export function App() {
  const session = current.value
  if (session === undefined) return <Opening />
  if (!session) return <Enter hasEnded={false} />
  const pages = everyPage.filter(({ call }) => may(call))
  return (
    <LocationProvider scope="/console">
      {isSignedOut.value ? <Enter hasEnded /> : null}
      <Shell
        name="operator"
        pages={pages}
        finder={placeFinder}
        who={session.person === null ? undefined : `${session.roles.join(', ')}: ${session.person}`}
        note={session.roles.includes('operator') ? undefined : noteFor(session.roles)}
        foot={
          <button type="button" onClick={() => void signOut()}>
            <Icon of={signOutIcon} />
            Sign out
          </button>
        }
      >
        <Router>
          <Route path="/console" component={may('operatorHealth') ? OverviewPage : UsagePage} />
          <Route path="/console/queues" component={QueuesPage} />
          <Route path="/console/queues/:lane+" component={QueuePage} />
          <Route path="/console/batches" component={BatchesPage} />
          <Route path="/console/batches/:id" component={BatchPage} />
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
          <Route path="/console/sessions" component={SessionsPage} />
          <Route path="/console/alerts" component={AlertsPage} />
          <Route path="/console/audit" component={AuditPage} />
          <Route default component={NotFound} />
        </Router>
      </Shell>
    </LocationProvider>
  )
}

/** Why the person does not see what others see. */
function noteFor(roles: readonly string[]): string {
  const rest = 'Actions that need another role are left out.'
  return roles.includes('finance')
    ? `You have the role ${roles.join(' and ')}: you can work with invoices and payments. ${rest}`
    : `You have the role ${roles.join(' and ')}: you can see everything, and change nothing. ${rest}`
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
      find={findSession}
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
