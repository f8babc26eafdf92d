import type { ThreadRun } from 'heed/client'
import { useQuery } from '../app/query.ts'
import { Link } from '../app/router.tsx'
import { useSession } from '../app/session.tsx'
import { Failed } from '../parts/states.tsx'
import { scopeOf, type KnownThread } from '../thread/known-thread.tsx'
import { sharesOf, type StepPrompt } from './step-prompt.ts'

/** How many steps have a bar. */
const maxBars = 8

/** A bar for each step near this one, as wide as its prompt: what the call before had at its beginning, and what is new. */
export function PrefixStrip({ thread, run, step }: { thread: KnownThread; run: ThreadRun; step: number }) {
  const { client } = useSession()
  const at = run.steps.findIndex((one) => one.step === step)
  const first = Math.max(0, Math.min(at - maxBars / 2, run.steps.length - maxBars))
  const near = run.steps.slice(first, first + maxBars).map((one) => one.step)
  const { data, error } = useQuery(`prefixes ${run.runId} ${near.join(' ')}`, () =>
    Promise.all(near.map((one) => client.getAgent(thread.agentId).getStepPrompt({ ...scopeOf(thread), runId: run.runId, step: one }))),
  )
  if (error !== undefined) return <Failed error={error} />
  if (!data) return null
  const widest = Math.max(1, ...data.map(({ bytes }) => bytes))
  return (
    <section className="prefix" aria-label="Stable prefix">
      <ul>
        {data.map((prompt) => (
          <PrefixBar key={prompt.step} prompt={prompt} widest={widest} thread={thread} isCurrent={prompt.step === step} />
        ))}
      </ul>
      <p className="meta prefix-legend">
        <span>
          <i className="kept" /> same bytes as the call before
        </span>
        <span>
          <i className="added" /> new at the end
        </span>
        <span>
          <i className="changed" /> after the first change
        </span>
      </p>
    </section>
  )
}

interface PrefixBarProps {
  prompt: StepPrompt
  widest: number
  thread: KnownThread
  isCurrent: boolean
}

function PrefixBar({ prompt, widest, thread, isCurrent }: PrefixBarProps) {
  const { kept, added, changed } = sharesOf(prompt)
  const width = (bytes: number) => ({ width: `${(bytes / widest) * 100}%` })
  return (
    <li aria-current={isCurrent ? 'step' : undefined} data-step={prompt.step}>
      <Link to={['threads', thread.threadId, 'runs', prompt.runId, 'steps', String(prompt.step)]}>step {prompt.step}</Link>
      <span className="prefix-bar" aria-hidden="true">
        <i className="kept" style={width(kept)} />
        <i className="added" style={width(added)} />
        <i className="changed" style={width(changed)} />
      </span>
      <span className="prefix-text">{prompt.previous === undefined ? 'the first call of the thread' : keptText(prompt)}</span>
    </li>
  )
}

/** The share of the call before that this prompt begins with, in bytes. */
export function keptText({ prefix, brokenAt, parts }: StepPrompt): string {
  const percent = Math.floor(prefix.ratio * 1_000) / 10
  if (brokenAt === undefined) return `${percent} % of the call before kept (${prefix.bytes.toLocaleString()} bytes)`
  const part = parts[brokenAt]
  const where = part === undefined ? 'it is shorter' : `changed at part ${brokenAt + 1} (${part.source})`
  return `${percent} % of the call before kept (${prefix.bytes.toLocaleString()} bytes), ${where}`
}
