import type { ThreadRun } from 'heed/client'
import { useShortcut } from '../app/keys.tsx'
import { useQuery } from '../app/query.ts'
import { hrefOf, Link, navigate, setQuery, usePlace } from '../app/router.tsx'
import { useSession } from '../app/session.tsx'
import { exactOf, spanOf } from '../app/time.tsx'
import { Empty, Failed, Loading } from '../parts/states.tsx'
import { scopeOf, WithThread, type KnownThread } from '../thread/known-thread.tsx'
import { ms } from '../timeline/leases.ts'
import { shortId } from '../timeline/signal-table.tsx'
import { PartDetails, Parts } from './parts.tsx'
import { PrefixStrip } from './prefix-strip.tsx'
import type { StepPrompt } from './step-prompt.ts'

type Step = ThreadRun['steps'][number]

/** The exact prompt of a step of a run, part by part, and how much of it the call before had. */
export function StepPage({ threadId, runId, step }: { threadId: string; runId: string; step: number }) {
  return <WithThread threadId={threadId}>{(thread) => <StepInspector thread={thread} runId={runId} step={step} />}</WithThread>
}

function StepInspector({ thread, runId, step }: { thread: KnownThread; runId: string; step: number }) {
  const { threadId, agentId, title } = thread
  const { client } = useSession()
  const { query } = usePlace()
  const agent = client.getAgent(agentId)
  const { data, error, isLoading, reload } = useQuery(`step ${threadId} ${runId} ${step}`, () =>
    agent.getStepPrompt({ ...scopeOf(thread), runId, step }),
  )
  const runs = useQuery(`runs ${threadId} ${runId}`, () => agent.listRuns({ ...scopeOf(thread), perPage: 100 }))
  const run = runs.data?.runs.find((one) => one.runId === runId)
  const isRaw = query.get('as') === 'raw'
  const toggleRaw = () => setQuery({ as: isRaw ? undefined : 'raw' })
  const go = (by: number) => {
    if (!run?.steps.some((one) => one.step === step + by)) return
    navigate(hrefOf(['threads', threadId, 'runs', runId, 'steps', String(step + by)], { as: query.get('as') ?? undefined }))
  }
  useShortcut('[', 'Step before', 'Prompt', () => go(-1))
  useShortcut(']', 'Step after', 'Prompt', () => go(1))
  useShortcut('o', 'Parts or the raw prompt', 'Prompt', toggleRaw)
  useShortcut('Escape', 'Back to the thread', 'Prompt', () => navigate(hrefOf(['threads', threadId])))
  return (
    <div className="page prompt-page">
      <header className="page-head">
        <h1>
          <Link to={['threads', threadId]}>{title || threadId}</Link> ›{' '}
          <Link to={['threads', threadId]} query={{ panel: 'runs' }}>
            run {shortId(runId)}
          </Link>{' '}
          › step {step}
        </h1>
        <div className="actions">
          <button type="button" aria-label="Step before" disabled={!run?.steps.some((one) => one.step === step - 1)} onClick={() => go(-1)}>
            ‹ <kbd>[</kbd>
          </button>
          <button type="button" aria-label="Step after" disabled={!run?.steps.some((one) => one.step === step + 1)} onClick={() => go(1)}>
            › <kbd>]</kbd>
          </button>
          <button type="button" aria-pressed={isRaw} onClick={toggleRaw}>
            Raw <kbd>o</kbd>
          </button>
        </div>
      </header>
      {isLoading && <Loading rows={8} />}
      <Failed error={error} onRetry={reload} />
      {data && <Facts prompt={data} step={run?.steps.find((one) => one.step === step)} />}
      {data && run && <PrefixStrip thread={thread} run={run} step={step} />}
      {data && (isRaw ? <Raw prompt={data} /> : <Inspected prompt={data} thread={thread} />)}
    </div>
  )
}

function Facts({ prompt, step }: { prompt: StepPrompt; step: Step | undefined }) {
  const { provider, modelId, tokens, bytes, exact, why, altered, startedAt, epoch } = prompt
  const usage = Object(step?.usage) as { inputTokens?: number; cachedInputTokens?: number; outputTokens?: number }
  return (
    <p className="prompt-facts">
      <b>{modelId === undefined ? 'model' : `${provider ?? ''}/${modelId}`}</b>
      <span>
        about {tokens.toLocaleString()} tokens, {bytes.toLocaleString()} bytes
      </span>
      {usage.inputTokens !== undefined && (
        <span>
          {usage.inputTokens.toLocaleString()} counted by the provider
          {usage.cachedInputTokens === undefined ? '' : `, ${usage.cachedInputTokens.toLocaleString()} from its cache`}
        </span>
      )}
      <span>
        <time dateTime={startedAt}>{exactOf(startedAt)}</time>
        {step === undefined ? '' : `, ${spanOf(ms(step.finishedAt) - ms(step.startedAt))}`}, epoch {epoch}
      </span>
      {altered && <span className="chip is-asking">a processor changed the messages of this call</span>}
      <span className={`chip ${exact ? 'is-open' : 'is-asking'}`}>{exact ? 'the bytes that the model received' : `not exact: ${why}`}</span>
    </p>
  )
}

function Inspected({ prompt, thread }: { prompt: StepPrompt; thread: KnownThread }) {
  const { query } = usePlace()
  const at = Number(query.get('part') ?? prompt.brokenAt ?? prompt.prefix.messages)
  const index = Math.min(prompt.parts.length - 1, Math.max(0, Number.isInteger(at) ? at : 0))
  const part = prompt.parts[index]
  if (!part) return <Empty title="This prompt has no parts." />
  return (
    <div className="prompt-parts">
      <Parts prompt={prompt} selected={index} onSelect={(next) => setQuery({ part: String(next) })} />
      <PartDetails prompt={prompt} index={index} part={part} thread={thread} />
    </div>
  )
}

/** The messages and the tools as the provider received them. */
function Raw({ prompt: { prompt, tools } }: { prompt: StepPrompt }) {
  return (
    <>
      <h2>Messages</h2>
      <pre className="json raw-prompt" tabIndex={0}>
        {JSON.stringify(prompt)}
      </pre>
      <h2>Tools</h2>
      <pre className="json raw-tools" tabIndex={0}>
        {JSON.stringify(tools)}
      </pre>
    </>
  )
}
