import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { Failure } from './client.ts'
import { Dialog } from './parts.tsx'
import { requestPath } from './request-path.ts'

/** An action on a page: whether it is under way, and why it failed. */
export interface PageAction {
  readonly isRunning: boolean
  readonly problem: string | undefined
  /** Of the request to a model that failed. */
  readonly requestId: string | undefined
  /** Resolves with whether it worked. */
  readonly run: (work: () => Promise<void>) => Promise<boolean>
}

export function useAction(): PageAction {
  const [isRunning, setRunning] = useState(false)
  const [failure, setFailure] = useState<Failure>()
  return {
    isRunning,
    problem: failure?.message,
    requestId: failure?.requestId,
    async run(work) {
      setFailure(undefined)
      setRunning(true)
      try {
        await work()
        return true
      } catch (error) {
        setFailure(error as Failure)
        return false
      } finally {
        setRunning(false)
      }
    },
  }
}

export function Problem({ of: { problem, requestId } }: { of: PageAction }) {
  return problem === undefined ? null : (
    <div class="notice bad" role="alert">
      {problem} {requestId === undefined ? null : <a href={requestPath(requestId)}>See the request</a>}
    </div>
  )
}

/** A confirmation before something that is hard to undo. It closes itself when it is done. */
export function Confirm({
  title,
  verb,
  act,
  close,
  children,
}: {
  title: string
  verb: string
  act: () => Promise<void>
  close: () => void
  children: ComponentChildren
}) {
  const action = useAction()
  return (
    <Dialog title={title} close={close}>
      {children}
      <Problem of={action} />
      <div class="row">
        <button
          type="button"
          class="danger"
          disabled={action.isRunning}
          onClick={() => void action.run(act).then((worked) => worked && close())}
        >
          {verb}
        </button>
        <button type="button" onClick={close}>
          Cancel
        </button>
      </div>
    </Dialog>
  )
}
