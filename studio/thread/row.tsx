import { memo, useState, type ReactNode } from 'react'
import { clockOf, exactOf } from '../app/time.tsx'
import { inline, Json } from '../parts/json.tsx'
import { Markdown } from '../parts/markdown.tsx'
import { OutsideText } from '../parts/states.tsx'
import { contentsOf, type FilePart, type Row, type SignalData, type ToolPart } from './rows.ts'

export interface RowActions {
  agentName: string
  /** Sends a message again that could not be sent, or removes it. */
  retry: (id: string) => void
  discard: (id: string) => void
}

/** A row of the transcript. Each kind looks like what it is. */
export const RowView = memo(function RowView({ row, actions }: { row: Row; actions: RowActions }) {
  switch (row.kind) {
    case 'user':
      return <UserMessage row={row} actions={actions} />
    case 'text':
      return (
        <section className="row row-agent">
          {row.isFirst && <RowHead name={actions.agentName} at={row.at} />}
          <Markdown text={row.text} />
        </section>
      )
    case 'reasoning':
      return (
        <details className="row row-reasoning">
          <summary>Reasoning</summary>
          <p>{row.text}</p>
        </details>
      )
    case 'tool':
      return <ToolCall part={row.part} />
    case 'file':
      return (
        <div className="row row-file">
          <File part={row.part} />
        </div>
      )
    case 'source':
      return (
        <div className="row row-source">
          <span className="label">source</span> {row.title} <code>{row.url}</code>
        </div>
      )
    case 'data':
      return (
        <details className="row row-data">
          <summary>
            <span className="label">{row.name}</span> {inline(row.data)}
          </summary>
          <Json value={row.data} />
        </details>
      )
    case 'state':
      return <StateChange signal={row.signal} at={row.at} />
    case 'notification':
      return <Notification signal={row.signal} at={row.at} />
    case 'watch':
      return <WatchResult signal={row.signal} at={row.at} />
    case 'signal':
      return <SystemSignal signal={row.signal} at={row.at} />
    case 'error':
      return <ErrorRow message={row.message} code={row.code} />
    case 'day':
      return (
        <div className="row divider">
          <span>{row.text}</span>
        </div>
      )
  }
})

export function ErrorRow({ message, code }: { message: string; code?: string | undefined }) {
  return (
    <div className="row row-error">
      <b>Error</b> <span>{message}</span>
      {code !== undefined && <code>{code}</code>}
    </div>
  )
}

function RowHead({ name, at, children }: { name: string; at: string | undefined; children?: ReactNode }) {
  return (
    <header className="row-head">
      <b>{name}</b>
      {children}
      {at !== undefined && (
        <time dateTime={at} title={exactOf(at)}>
          {clockOf(at)}
        </time>
      )}
    </header>
  )
}

function UserMessage({ row: { message, text, files }, actions }: { row: Extract<Row, { kind: 'user' }>; actions: RowActions }) {
  const { id, metadata } = message
  const sendError = metadata?.sendError as string | undefined
  const isSending = metadata?.optimistic === true && sendError === undefined
  return (
    <section className="row row-user">
      <RowHead name="You" at={metadata?.createdAt}>
        {isSending && <span className="chip">sending</span>}
      </RowHead>
      <p className="plain">{text}</p>
      {files.map((file, index) => (
        <File key={index} part={file} />
      ))}
      {sendError !== undefined && (
        <div className="failed" role="alert">
          <span>Not sent: {sendError}</span>
          <button type="button" onClick={() => actions.retry(id)}>
            Send again
          </button>
          <button type="button" onClick={() => actions.discard(id)}>
            Remove
          </button>
        </div>
      )}
    </section>
  )
}

/** An image that is part of the message is shown; one elsewhere is named, and not loaded. */
function File({ part: { url, mediaType, ...rest } }: { part: FilePart }) {
  const name = 'filename' in rest && rest.filename !== undefined ? rest.filename : mediaType
  if (/^data:image\/(?:png|jpeg|gif|webp)/.test(url)) return <img className="picture" src={url} alt={name} />
  return (
    <span className="chip">
      file {name}
      {url.startsWith('data:') ? '' : ` ${url}`}
    </span>
  )
}

const toolStates: Readonly<Record<ToolPart['state'], { text: string; className: string }>> = {
  'input-available': { text: 'started', className: 'is-running' },
  'approval-requested': { text: 'asks for approval', className: 'is-asking' },
  'approval-responded': { text: 'decided', className: 'is-running' },
  'output-available': { text: 'done', className: 'is-done' },
  'output-error': { text: 'failed', className: 'is-failed' },
  'output-denied': { text: 'declined', className: 'is-failed' },
}

function ToolCall({ part }: { part: ToolPart }) {
  const { text, className } = toolStates[part.state]
  const approval = 'approval' in part ? (part.approval as { approved?: boolean; by?: string; reason?: string } | undefined) : undefined
  const result = part.state === 'output-available' ? part.output : undefined
  return (
    <details className={`row row-tool ${className}`}>
      <summary>
        <span className="tool-name">{part.type.slice('tool-'.length)}</span>
        <code className="tool-input">{inline(part.input)}</code>
        {result !== undefined && <code className="tool-output">→ {inline(result)}</code>}
        <span className="tool-state">
          {approval?.approved === true ? `approved${approval.by === undefined ? '' : ` by ${approval.by}`}, ${text}` : text}
        </span>
      </summary>
      <div className="tool-body">
        <div>
          <h3>Arguments</h3>
          <Json value={part.input} />
        </div>
        {part.state === 'output-available' && (
          <div>
            <h3>Result</h3>
            <Json value={part.output} />
          </div>
        )}
        {part.state === 'output-error' && (
          <div className="problem">
            <h3>Error</h3>
            <p>{part.errorText}</p>
          </div>
        )}
        {part.state === 'output-denied' && (
          <div>
            <h3>Declined</h3>
            <p>
              {approval?.reason ?? 'Without a reason.'}
              {approval?.by === undefined ? '' : ` By ${approval.by}.`}
            </p>
          </div>
        )}
      </div>
    </details>
  )
}

function recordOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

function StateChange({ signal, at }: { signal: SignalData; at: string | undefined }) {
  const state = recordOf(signal.metadata?.state)
  const version = Number(state.version ?? 0)
  const isDelta = state.mode === 'delta'
  const { value, delta } = recordOf(signal.metadata)
  return (
    <details className="row row-state">
      <summary>
        <span className="mark" aria-hidden="true">
          ◇
        </span>
        <span className="label">{String(state.id ?? 'state')}</span>
        <span className="versions">{isDelta && version > 1 ? `v${version - 1} → v${version}` : `v${version}`}</span>
        <span className="clip">{contentsOf(signal)}</span>
        <RowTime at={at} />
      </summary>
      <div className="tool-body">
        <div>
          <h3>What the model reads</h3>
          <pre className="json">{contentsOf(signal)}</pre>
        </div>
        {delta !== undefined && (
          <div>
            <h3>Change</h3>
            <Json value={delta} />
          </div>
        )}
        {value !== undefined && (
          <div>
            <h3>Value</h3>
            <Json value={value} />
          </div>
        )}
      </div>
    </details>
  )
}

const marks: Readonly<Record<string, string>> = { urgent: '■', high: '▲', medium: '●', low: '·' }

export function Priority({ priority }: { priority: string }) {
  return (
    <span className={`priority priority-${priority}`}>
      <i aria-hidden="true">{marks[priority] ?? '·'}</i> {priority}
    </span>
  )
}

function Notification({ signal, at }: { signal: SignalData; at: string | undefined }) {
  const { notification, taintedBy } = recordOf(signal.metadata)
  const record = recordOf(notification)
  const isSummary = record.signal === 'summary'
  return (
    <section className="row row-notification">
      <div className="line">
        {isSummary ? <span className="label">summary</span> : <Priority priority={String(record.priority ?? 'medium')} />}
        <span className="label">
          {isSummary ? `${String(record.pending)} pending` : `${String(record.source ?? '')} ${String(record.kind ?? '')}`}
        </span>
        <RowTime at={at} />
      </div>
      {taintedBy === undefined ? (
        <p className="plain">{contentsOf(signal)}</p>
      ) : (
        <OutsideText label={`from ${String(record.source ?? 'outside')}`}>{contentsOf(signal)}</OutsideText>
      )}
    </section>
  )
}

/** Only the value that passed the schema crossed into the thread; the message is not here. */
function WatchResult({ signal, at }: { signal: SignalData; at: string | undefined }) {
  const { id, reason, value, channel } = recordOf(signal.metadata?.watch)
  return (
    <section className="row row-watch">
      <div className="line">
        <span className="label">watch</span>
        <b>{String(reason ?? '')}</b>
        {typeof channel === 'string' && <span className="meta">from {channel}</span>}
        <RowTime at={at} />
      </div>
      {value === undefined ? (
        <p className="meta">Nothing crossed but the reason.</p>
      ) : (
        <OutsideText label="crossed from outside">{typeof value === 'string' ? value : JSON.stringify(value, null, 2)}</OutsideText>
      )}
      <details>
        <summary className="meta">What the model reads</summary>
        <pre className="json">{contentsOf(signal)}</pre>
        <p className="meta mono">{String(id ?? '')}</p>
      </details>
    </section>
  )
}

function SystemSignal({ signal, at }: { signal: SignalData; at: string | undefined }) {
  const text = contentsOf(signal)
  const [isOpen, setOpen] = useState(false)
  const isLong = text.length > 240 || text.split('\n').length > 3
  return (
    <section className="row row-signal">
      <div className="line">
        <span className="label">{signal.tagName}</span>
        {Object.entries(signal.attributes ?? {}).map(([name, value]) => (
          <span key={name} className="chip">
            {name}={String(value)}
          </span>
        ))}
        <RowTime at={at} />
      </div>
      <p className={isLong && !isOpen ? 'plain folded' : 'plain'}>{text}</p>
      {isLong && (
        <button type="button" className="quiet" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {isOpen ? 'Less' : 'More'}
        </button>
      )}
    </section>
  )
}

function RowTime({ at }: { at: string | undefined }) {
  return at === undefined ? null : (
    <time dateTime={at} title={exactOf(at)}>
      {clockOf(at)}
    </time>
  )
}
