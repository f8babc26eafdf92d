import { useMemo, useState } from 'react'
import type { AgentDetails } from 'heed/client'
import type { Thread } from 'heed/react'
import { Link } from '../app/router.tsx'
import { useSession } from '../app/session.tsx'
import { Empty } from '../parts/states.tsx'
import { Approvals } from './approval.tsx'
import { Composer } from './composer.tsx'
import { noHistory } from './history.ts'
import { useOpenThread } from './open-thread.ts'
import type { RowActions } from './row.tsx'
import { SignalForm } from './signal-form.tsx'
import { Transcript } from './transcript.tsx'

const own = Date.now().toString(36)

/** A thread to try an agent on. `version`: the one that its runs get, published or not. */
export function Try({ agent, version }: { agent: AgentDetails; version?: number }) {
  const { client } = useSession()
  const [round, setRound] = useState(0)
  const threadId = `try-${agent.id}-${own}${version === undefined ? '' : `-v${version}`}${round === 0 ? '' : `-${round}`}`
  const scope = { threadId, resourceId: 'studio' }
  const remote = client.getAgent(agent.id)
  const plain = useOpenThread(remote, scope)
  const thread: Thread = version === undefined ? plain : { ...plain, ...sendsOf(plain, remote, scope, version) }
  const { retry, discard } = plain
  const actions = useMemo<RowActions>(
    () => ({ agentName: agent.name, retry: (id) => void retry(id), discard }),
    [agent.name, retry, discard],
  )
  const [isSignal, setSignal] = useState(false)
  return (
    <section className="agent-try" aria-label="Try">
      <header className="thread-head">
        <div className="thread-name">
          <h2>Try{version === undefined ? '' : version === 0 ? ' what code says' : ` version ${version}`}</h2>
          <p className="meta">
            on{' '}
            <Link to={['threads', threadId]} query={{ agent: agent.id, resource: 'studio' }} className="mono">
              {threadId}
            </Link>
          </p>
        </div>
        <button type="button" onClick={() => setRound(round + 1)}>
          New thread
        </button>
      </header>
      {thread.messages.length === 0 ? (
        <div className="transcript-frame">
          <Empty title={`Write to ${agent.name}.`}>
            <p>This is a real thread: it is stored, and you find it in the list of threads.</p>
            {version !== undefined && <p>Only its runs get this version. What other runs get changes when you publish.</p>}
          </Empty>
        </div>
      ) : (
        <Transcript thread={thread} history={noHistory} actions={actions} at={null} onFork={() => {}} />
      )}
      <Approvals thread={thread} />
      {isSignal && (
        <div className="card">
          <SignalForm scope={scope} agentId={agent.id} onSent={() => {}} />
        </div>
      )}
      <Composer thread={thread} threadId={threadId} onSignal={() => setSignal(!isSignal)} />
    </section>
  )
}

/** Sends that start runs with a version. A message that enters an active run changes nothing about its version. */
function sendsOf(
  thread: Thread,
  agent: ReturnType<ReturnType<typeof useSession>['client']['getAgent']>,
  scope: { threadId: string; resourceId: string },
  version: number,
): Pick<Thread, 'send' | 'queue'> {
  const ifIdle = { streamOptions: { agentVersion: version } }
  return {
    send: (message, options) => thread.send(message, { ...options, ifIdle }),
    queue: async (message) => void (await agent.queueMessage({ ...scope, message, ifIdle })),
  }
}
