import type { KeyboardEvent } from 'react'
import { useQuery } from '../app/query.ts'
import { Link } from '../app/router.tsx'
import { useSession } from '../app/session.tsx'
import { Json } from '../parts/json.tsx'
import { scopeOf, type KnownThread } from '../thread/known-thread.tsx'
import { commonLength, textOf, valueOf, type PromptPart, type StepPrompt } from './step-prompt.ts'

/** All parts in their order, by source and tokens. */
export function Parts({ prompt, selected, onSelect }: { prompt: StepPrompt; selected: number; onSelect: (index: number) => void }) {
  const { parts, tokens, prefix, brokenAt } = prompt
  const onKey = (event: KeyboardEvent<HTMLTableSectionElement>) => {
    const by = event.key === 'j' || event.key === 'ArrowDown' ? 1 : event.key === 'k' || event.key === 'ArrowUp' ? -1 : 0
    if (by === 0) return
    event.preventDefault()
    const next = Math.min(parts.length - 1, Math.max(0, selected + by))
    onSelect(next)
    event.currentTarget.querySelectorAll('button')[next]?.focus()
  }
  return (
    <table className="list parts">
      <thead>
        <tr>
          <th scope="col">Source</th>
          <th scope="col">Text</th>
          <th scope="col" className="number">
            Tokens
          </th>
        </tr>
      </thead>
      <tbody onKeyDown={onKey}>
        {parts.map((part, index) => (
          <tr key={index} className={`part-${partState(index, prefix.messages, brokenAt)}${index === selected ? ' is-selected' : ''}`}>
            <td>
              <span className={`label source-${part.source}`}>{part.source}</span>
            </td>
            <td>
              <button type="button" className="quiet clip" aria-pressed={index === selected} onClick={() => onSelect(index)}>
                {index === brokenAt ? '! ' : ''}
                {part.preview === '' ? '(no text)' : part.preview}
              </button>
            </td>
            <td className="number" title={`${percentOf(part, tokens).toFixed(1)} %, ${part.bytes.toLocaleString()} bytes`}>
              {part.tokens.toLocaleString()}
              <span className="share" aria-hidden="true">
                <i style={{ width: `${percentOf(part, tokens)}%` }} />
              </span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function percentOf(part: PromptPart, tokens: number): number {
  return (part.tokens / Math.max(1, tokens)) * 100
}

function partState(index: number, kept: number, brokenAt: number | undefined): 'kept' | 'added' | 'changed' {
  return index < kept ? 'kept' : brokenAt === undefined ? 'added' : 'changed'
}

/** One part as the model received it, and what the call before had in its place. */
export function PartDetails({ prompt, index, part, thread }: { prompt: StepPrompt; index: number; part: PromptPart; thread: KnownThread }) {
  const value = valueOf(prompt, part)
  const text = textOf(value)
  return (
    <section className="card part-details" aria-label="The selected part">
      <header>
        <b>
          {index + 1}. {part.source}
        </b>
        <span className="meta">
          {part.role}, {part.tokens.toLocaleString()} tokens, {part.bytes.toLocaleString()} bytes
        </span>
        {part.messageId !== undefined && (
          <Link to={['threads', thread.threadId]} query={{ at: part.messageId }}>
            Open in the thread
          </Link>
        )}
      </header>
      {text === undefined ? <Json value={value} /> : <pre className="json part-text">{text}</pre>}
      {text !== undefined && (
        <details>
          <summary className="meta">As JSON</summary>
          <Json value={value} />
        </details>
      )}
      {part.recalled && part.recalled.length > 0 && <Recalled hits={part.recalled} />}
      {index === prompt.brokenAt && prompt.previous && <Before {...{ prompt, value, index, thread }} previous={prompt.previous} />}
    </section>
  )
}

/** What recall found, with the score of each reason, relative to the best hit. */
function Recalled({ hits }: { hits: NonNullable<PromptPart['recalled']> }) {
  return (
    <>
      <h3>Why recall found it</h3>
      <ul className="history">
        {hits.map((hit) => (
          <li key={`${hit.threadId} ${hit.messageId}`}>
            <b>{hit.score.toFixed(2)}</b>{' '}
            <Link to={['threads', hit.threadId]} query={{ at: hit.messageId }} className="mono">
              {hit.threadId}/{hit.messageId}
            </Link>{' '}
            <span className="meta">{reasonsText(hit.reasons)}</span>
          </li>
        ))}
      </ul>
    </>
  )
}

/** The reasons that count, best first. */
export function reasonsText(reasons: Readonly<Record<string, number>>): string {
  return Object.entries(reasons)
    .filter(([, score]) => score > 0)
    .toSorted(([, one], [, other]) => other - one)
    .map(([name, score]) => `${name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)} ${score.toFixed(2)}`)
    .join(', ')
}

interface BeforeProps {
  prompt: StepPrompt
  previous: { runId: string; step: number }
  value: unknown
  index: number
  thread: KnownThread
}

/** The part at the same place of the call before, from where the two differ. */
function Before({ previous: { runId, step }, value, index, thread }: BeforeProps) {
  const { client } = useSession()
  const { data } = useQuery(`step ${thread.threadId} ${runId} ${step}`, () =>
    client.getAgent(thread.agentId).getStepPrompt({ ...scopeOf(thread), runId, step }),
  )
  const part = data?.parts[index]
  if (!data || !part) return null
  const [now, before] = [JSON.stringify(value), JSON.stringify(valueOf(data, part))]
  const same = commonLength(now, before)
  return (
    <>
      <h3>
        In{' '}
        <Link to={['threads', thread.threadId, 'runs', runId, 'steps', String(step)]}>step {step} before it</Link>: {part.source}
      </h3>
      <pre className="json difference">
        {same > 60 ? `… ${before.slice(same - 60, same)}` : before.slice(0, same)}
        <del>{before.slice(same, same + 400)}</del>
      </pre>
      <pre className="json difference">
        {same > 60 ? `… ${now.slice(same - 60, same)}` : now.slice(0, same)}
        <ins>{now.slice(same, same + 400)}</ins>
      </pre>
    </>
  )
}
