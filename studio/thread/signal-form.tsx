import { useState, type FormEvent } from 'react'
import type { AgentClient } from 'heed/client'
import { useAction } from '../app/query.ts'
import { useSession } from '../app/session.tsx'
import { Failed } from '../parts/states.tsx'

const kinds = ['message', 'queued message', 'signal', 'state', 'notification', 'schedule'] as const
type Kind = (typeof kinds)[number]

const about: Readonly<Record<Kind, string>> = {
  message: 'Enters the active run at its next step, or starts a run.',
  'queued message': 'Starts a run of its own, after the active one.',
  signal: 'Context that a system produced, under a tag of its own.',
  state: 'The state of a lane. The model reads each change once.',
  notification: 'A record in the inbox. The delivery policy decides when the agent reads it.',
  schedule: 'Sends the text again and again.',
}

interface Draft {
  text: string
  tagName: string
  lane: string
  mode: 'snapshot' | 'delta'
  value: string
  source: string
  priority: 'low' | 'medium' | 'high' | 'urgent'
  everyMinutes: string
  ifActive: '' | 'deliver' | 'interrupt' | 'persist' | 'discard'
  ifIdle: '' | 'wake' | 'persist' | 'discard'
}

const empty: Draft = {
  text: '',
  tagName: 'system-reminder',
  lane: 'browser',
  mode: 'snapshot',
  value: '',
  source: 'studio',
  priority: 'medium',
  everyMinutes: '60',
  ifActive: '',
  ifIdle: '',
}

interface Props {
  scope: { threadId: string; resourceId?: string }
  agentId: string
  onSent: () => void
}

/** A form for every kind of send. */
export function SignalForm({ scope, agentId, onSent }: Props) {
  const { client } = useSession()
  const [kind, setKind] = useState<Kind>('message')
  const [draft, setDraft] = useState(empty)
  const [result, setResult] = useState<string>()
  const set = (change: Partial<Draft>) => setDraft({ ...draft, ...change })
  const send = useAction(async () => {
    setResult(await deliver(client.getAgent(agentId), kind, draft, scope))
    setDraft({ ...draft, text: '' })
    onSent()
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void send.run()
  }
  return (
    <form className="signal-form" onSubmit={submit}>
      <fieldset className="choices">
        <legend>Kind</legend>
        {kinds.map((one) => (
          <label key={one}>
            <input type="radio" name="kind" checked={kind === one} onChange={() => setKind(one)} />
            {one}
          </label>
        ))}
      </fieldset>
      <p className="meta">{about[kind]}</p>
      <label>
        Text
        <textarea rows={3} required value={draft.text} onChange={(event) => set({ text: event.target.value })} />
      </label>
      <div className="columns">
        <KindFields kind={kind} draft={draft} set={set} />
      </div>
      <div className="actions">
        <button type="submit" className="primary" disabled={send.isBusy}>
          Send
        </button>
        {result !== undefined && (
          <span className="meta" role="status">
            {result}
          </span>
        )}
      </div>
      <Failed error={send.error} />
    </form>
  )
}

function KindFields({ kind, draft, set }: { kind: Kind; draft: Draft; set: (change: Partial<Draft>) => void }) {
  if (kind === 'notification') {
    return (
      <>
        <label>
          Source
          <input value={draft.source} onChange={(event) => set({ source: event.target.value })} />
        </label>
        <label>
          Priority
          <Choice value={draft.priority} values={['low', 'medium', 'high', 'urgent']} onChange={(priority) => set({ priority })} />
        </label>
      </>
    )
  }
  if (kind === 'schedule')
    return (
      <label>
        Every (minutes)
        <input type="number" min={1} value={draft.everyMinutes} onChange={(event) => set({ everyMinutes: event.target.value })} />
      </label>
    )
  if (kind === 'queued message') return null
  return (
    <>
      {kind === 'signal' && (
        <label>
          Tag
          <input value={draft.tagName} onChange={(event) => set({ tagName: event.target.value })} />
        </label>
      )}
      {kind === 'state' && (
        <>
          <label>
            Lane
            <input value={draft.lane} onChange={(event) => set({ lane: event.target.value })} />
          </label>
          <label>
            Mode
            <Choice value={draft.mode} values={['snapshot', 'delta']} onChange={(mode) => set({ mode })} />
          </label>
          <label>
            {draft.mode === 'delta' ? 'Change' : 'Value'}, as JSON (optional)
            <input className="mono" value={draft.value} onChange={(event) => set({ value: event.target.value })} />
          </label>
        </>
      )}
      <label>
        While it runs
        <Choice
          value={draft.ifActive}
          values={['', 'deliver', 'interrupt', 'persist', 'discard']}
          onChange={(ifActive) => set({ ifActive })}
        />
      </label>
      <label>
        While it is idle
        <Choice value={draft.ifIdle} values={['', 'wake', 'persist', 'discard']} onChange={(ifIdle) => set({ ifIdle })} />
      </label>
    </>
  )
}

function Choice<Value extends string>({
  value,
  values,
  onChange,
}: {
  value: Value
  values: readonly Value[]
  onChange: (value: Value) => void
}) {
  return (
    <select value={value} onChange={(event) => onChange(event.target.value as Value)}>
      {values.map((one) => (
        <option key={one} value={one}>
          {one === '' ? 'default' : one}
        </option>
      ))}
    </select>
  )
}

/** The value of a state for programs, beside the text for the model. */
function valueOf({ mode, value }: Draft): { value?: unknown; delta?: unknown } {
  if (value.trim() === '') return {}
  const parsed = JSON.parse(value) as unknown
  return mode === 'delta' ? { delta: parsed } : { value: parsed }
}

function signalOf({ tagName, text }: Draft) {
  return { type: 'reactive', tagName, contents: text } as const
}

/** Sends it; resolves with what became of it, in words. */
async function deliver(agent: AgentClient, kind: Kind, draft: Draft, scope: Props['scope']): Promise<string> {
  const { text, ifActive, ifIdle } = draft
  const target = {
    ...scope,
    ...(ifActive === '' ? {} : { ifActive: { behavior: ifActive } }),
    ...(ifIdle === '' ? {} : { ifIdle: { behavior: ifIdle } }),
  }
  switch (kind) {
    case 'message':
      return `Stored as ${(await agent.sendMessage({ message: text, ...target })).signal.id}`
    case 'queued message':
      return `Queued as ${(await agent.queueMessage({ message: text, ...scope })).signal.id}`
    case 'signal':
      return `Stored as ${(await agent.sendSignal({ signal: signalOf(draft), ...target })).signal.id}`
    case 'state': {
      const answer = await agent.sendStateSignal({
        state: { id: draft.lane, cacheKey: `studio-${Date.now()}`, contents: text, mode: draft.mode, ...valueOf(draft) },
        ...target,
      })
      return answer.skipped ? 'Unchanged: not sent' : `Stored as ${answer.signal.id}`
    }
    case 'notification': {
      const notification = { source: draft.source, kind: 'note', summary: text, priority: draft.priority }
      const { decision } = await agent.notifications.send({ notification, ...scope })
      return `Decided: ${decision.action}${decision.reason === undefined ? '' : ` (${decision.reason})`}`
    }
    case 'schedule': {
      const { nextAt } = await agent.schedules.create({ ...scope, message: text, every: Number(draft.everyMinutes) * 60_000 })
      return `First sent at ${new Date(nextAt ?? '').toLocaleString()}`
    }
  }
}
