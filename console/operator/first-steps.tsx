import { count } from '../shared/format.ts'
import { Code, Copy } from '../shared/parts.tsx'
import { Steps } from '../shared/steps.tsx'

/** The way of a new service to its first request. It is shown until there was one. */
export function FirstSteps({
  models,
  workspaces,
  hasKey,
}: {
  models: number
  workspaces: readonly { readonly name: string }[]
  hasKey: boolean
}) {
  const command = `npx weir console --workspace ${workspaces[0]?.name ?? 'NAME'}`
  return (
    <Steps
      of={[
        {
          title: 'A catalog of models',
          isDone: models > 0,
          content: (
            <p class="soft">
              {models > 0
                ? `${count(models)} ${models === 1 ? 'model is' : 'models are'} in force.`
                : 'Name your engines and models in weir.yaml, then take the file here.'}{' '}
              <a href="/console/catalog">{models > 0 ? 'See the catalog' : 'Check the catalog'}</a>
            </p>
          ),
        },
        {
          title: 'A workspace',
          isDone: workspaces.length > 0,
          content: (
            <p class="soft">
              {workspaces.length > 0
                ? `Keys, limits and invoices belong to it, such as ${workspaces[0]?.name ?? ''}.`
                : 'Keys, limits and invoices belong to a workspace.'}{' '}
              <a href="/console/workspaces">{workspaces.length > 0 ? 'See the workspaces' : 'Create a workspace'}</a>
            </p>
          ),
        },
        {
          title: 'A key',
          isDone: hasKey,
          content: (
            <p class="soft">
              Programs identify themselves with a key of their workspace.{' '}
              <a href="/console/keys">{hasKey ? 'See the keys' : 'Create a key'}</a>
            </p>
          ),
        },
        {
          title: 'The first request',
          isDone: false,
          content: (
            <>
              <p class="soft">
                This prints a link to the console of the workspace, which sends one and has the code for it. The request
                appears below when it is settled.
              </p>
              <div class="row apart">
                <Code text={command} label="Opens the console of the workspace" />
                <Copy text={command} />
              </div>
            </>
          ),
        },
      ]}
    />
  )
}
