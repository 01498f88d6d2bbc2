import { LocationProvider, Route, Router, useLocation } from 'preact-iso/router'
import { isSignedOut } from '../shared/client.ts'
import { Icon } from '../shared/icon.tsx'
import {
  aiModelIcon,
  commentDiscussionIcon,
  creditCardIcon,
  graphIcon,
  homeIcon,
  keyIcon,
  peopleIcon,
  pulseIcon,
  rocketIcon,
  signInIcon,
  signOutIcon,
  tasklistIcon,
} from '../shared/icons.ts'
import { Opening } from '../shared/opening.tsx'
import { Empty, PageHead } from '../shared/parts.tsx'
import { Shell } from '../shared/shell.tsx'
import { SignIn } from '../shared/sign-in.tsx'
import { BatchesPage, BatchPage } from './pages/batches.tsx'
import { InvoiceLinePage, InvoicePage, InvoicesPage } from './pages/invoices.tsx'
import { KeysPage } from './pages/keys.tsx'
import { ModelPage } from './pages/model.tsx'
import { ModelsPage, PublicModelsPage } from './pages/models.tsx'
import { OverviewPage } from './pages/overview.tsx'
import { PlaygroundPage } from './pages/playground.tsx'
import { RequestPage, RequestsPage } from './pages/requests.tsx'
import { StartPage } from './pages/start.tsx'
import { UsagePage } from './pages/usage.tsx'
import { placeFinder } from './places.ts'
import { SessionsPage } from './pages/sessions.tsx'
import { findSession, linkProblem, may, moveTo, publicModels, session, signIn, signOut } from './session.ts'
import type { Session } from './api.ts'

const pages = [
  { path: '/console', title: 'Overview', icon: homeIcon },
  { path: '/console/start', title: 'Start', icon: rocketIcon },
  { path: '/console/models', title: 'Models', icon: aiModelIcon },
  { path: '/console/playground', title: 'Playground', icon: commentDiscussionIcon },
  { path: '/console/batches', title: 'Batches', icon: tasklistIcon },
  { path: '/console/keys', title: 'Keys', icon: keyIcon },
  { path: '/console/usage', title: 'Usage', icon: graphIcon },
  { path: '/console/requests', title: 'Requests', icon: pulseIcon },
  { path: '/console/invoices', title: 'Invoices', icon: creditCardIcon },
]

export function App() {
  const current = session.value
  if (current === undefined) return <Opening />
  return (
    <LocationProvider scope="/console">
      {current !== null ? (
        <>
          {isSignedOut.value ? <Enter hasEnded /> : null}
          <Member key={current.workspace} session={current} />
        </>
      ) : publicModels.value ? (
        <Visitor />
      ) : (
        <Enter hasEnded={false} />
      )}
    </LocationProvider>
  )
}

function Member({ session: { workspace, workspaces, person, role } }: { session: Session }) {
  return (
    <Shell
      name={workspace}
      pages={pages.filter(({ path }) => path !== '/console/invoices' || may('invoices'))}
      finder={placeFinder}
      who={person === null ? undefined : `${role.replace('_', ' ')}: ${person}`}
      foot={
        <>
          {workspaces.length < 2 ? null : (
            <label class="workspace-choice">
              Workspace
              <select value={workspace} onChange={(event) => void moveTo(event.currentTarget.value)}>
                {workspaces.map((name) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
            </label>
          )}
          <a href="/console/sessions">
            <Icon of={peopleIcon} />
            Sessions
          </a>
          <button type="button" onClick={() => void signOut()}>
            <Icon of={signOutIcon} />
            Sign out
          </button>
        </>
      }
    >
      <Router>
        <Route path="/console" component={OverviewPage} />
        <Route path="/console/sign-in" component={OverviewPage} />
        <Route path="/console/start" component={StartPage} />
        <Route path="/console/models" component={ModelsPage} />
        <Route path="/console/models/:slug+" component={ModelPage} />
        <Route path="/console/playground" component={PlaygroundPage} />
        <Route path="/console/batches" component={BatchesPage} />
        <Route path="/console/batches/:id" component={BatchPage} />
        <Route path="/console/keys" component={KeysPage} />
        <Route path="/console/sessions" component={SessionsPage} />
        <Route path="/console/usage" component={UsagePage} />
        <Route path="/console/requests" component={RequestsPage} />
        <Route path="/console/requests/:id" component={RequestPage} />
        <Route path="/console/invoices" component={InvoicesPage} />
        <Route path="/console/invoices/:number" component={InvoicePage} />
        <Route path="/console/invoices/:number/:line" component={InvoiceLinePage} />
        <Route default component={NotFound} />
      </Router>
    </Shell>
  )
}

/** A visitor who is not signed in, if the operator makes the models public. */
function Visitor() {
  const { path } = useLocation()
  if (path !== '/console' && path !== '/console/models') return <Enter hasEnded={false} />
  return (
    <Shell
      name=""
      pages={[{ path: '/console/models', title: 'Models', icon: aiModelIcon }]}
      foot={
        <a href="/console/sign-in">
          <Icon of={signInIcon} />
          Sign in
        </a>
      }
    >
      <PublicModelsPage />
    </Shell>
  )
}

function Enter({ hasEnded }: { hasEnded: boolean }) {
  return (
    <SignIn
      title="Weir"
      about="Sign in with an API key of your workspace. The key is checked once and not kept in this browser."
      label="API key"
      hasEnded={hasEnded}
      linkProblem={hasEnded ? undefined : linkProblem.value}
      enter={(key) => signIn({ key })}
      find={findSession}
    />
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
