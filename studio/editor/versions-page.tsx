import { useMemo, useState, type ReactNode } from 'react'
import { isHeedError, type AgentDetails } from 'heed/client'
import { useQuery } from '../app/query.ts'
import { Link, setQuery, usePlace } from '../app/router.tsx'
import { useSession } from '../app/session.tsx'
import { Empty, Failed, Loading } from '../parts/states.tsx'
import { Try } from '../thread/try.tsx'
import { Differences } from './difference.tsx'
import { DraftForm } from './draft-form.tsx'
import { ReleaseList, VersionList, versionName } from './history.tsx'
import { ReleaseForm } from './release-form.tsx'
import { changesOf, type Described, type Release, type Version } from './versions.ts'

const titles = { edit: 'Edit', compare: 'Compare', publish: 'Publish', releases: 'Releases' }

/** How many versions, and how many releases, are listed. */
const perList = 100

interface Known {
  described: Described
  /** The ids of prompt blocks. */
  blocks: string[]
  versions: Version[]
  releases: Release[]
}

/** The versions of an agent: edit, compare, try, publish, roll back. */
export function VersionsPage({ agentId }: { agentId: string }) {
  const { client, agents } = useSession()
  const agent = agents.find(({ id }) => id === agentId)
  const editor = useMemo(() => client.getAgent(agentId).editor, [client, agentId])
  const { data, error, isLoading, reload } = useQuery<Known>(agent ? `versions ${agentId}` : null, async () => {
    const [described, { versions }, { releases }, { blocks }] = await Promise.all([
      editor.describe(),
      editor.listVersions({ limit: perList }),
      editor.listReleases({ limit: perList }),
      client.prompts({ agentId }).list({ limit: perList }),
    ])
    return { described, versions, releases, blocks: blocks.map(({ id }) => id) }
  })
  if (!agent) return <Empty title="There is no such agent." />
  if (isLoading) return <Loading />
  if (!data) return <NoVersions agent={agent} error={error} onRetry={reload} />
  return <OpenVersions agent={agent} known={data} editor={editor} reload={reload} />
}

function NoVersions({ agent, error, onRetry }: { agent: AgentDetails; error: unknown; onRetry: () => void }) {
  const isLocked = isHeedError(error) && error.code === 'edit_locked'
  return (
    <div className="page">
      <Head agent={agent} />
      {isLocked ? (
        <Empty title="This agent is not edited here.">
          <p>{error.message}</p>
          <p>
            An editor lets people change the instructions and tools of agents:{' '}
            <code>
              new Heed({'{'} agents, editor: new HeedEditor() {'}'})
            </code>
            .
          </p>
        </Empty>
      ) : (
        <Failed error={error} onRetry={onRetry} />
      )}
    </div>
  )
}

function Head({ agent, children }: { agent: AgentDetails; children?: ReactNode }) {
  return (
    <header className="page-head">
      <h1>
        <Link to={['agents', agent.id]}>{agent.name}</Link> versions
      </h1>
      {children}
    </header>
  )
}

function OpenVersions({
  agent,
  known: { described, versions, releases, blocks },
  editor,
  reload,
}: {
  agent: AgentDetails
  known: Known
  editor: ReturnType<ReturnType<typeof useSession>['client']['getAgent']>['editor']
  reload: () => void
}) {
  const { query } = usePlace()
  const { latest, release } = described
  const version = numberOf(query.get('version')) ?? latest?.version ?? 0
  const tried = numberOf(query.get('try')) ?? latest?.version ?? 0
  const start = versions.find((one) => one.version === version) ?? null
  const show = query.get('show') ?? 'edit'
  const [stripped, setStripped] = useState<readonly string[]>([])
  return (
    <div className="agent agent-versions">
      <section className="agent-about" aria-label="Versions">
        <Head agent={agent}>
          <Link className="button" to={['prompt-blocks']} query={{ agent: agent.id }}>
            Prompt blocks
          </Link>
        </Head>
        <p>
          Runs get <b>{versionName(release?.version ?? 0)}</b>
          {release?.rules === undefined ? '' : `, but for ${release.rules.length === 1 ? 'a rule' : 'some rules'}`}.
          {described.isDraft && latest && ` Version ${latest.version} is a draft.`}
        </p>
        <div className="choices" role="group" aria-label="What is shown">
          {(['edit', 'compare', 'publish', 'releases'] as const).map((one) => (
            <button
              key={one}
              type="button"
              aria-pressed={show === one}
              onClick={() => setQuery({ show: one === 'edit' ? undefined : one })}
            >
              {one === 'releases' ? `Releases (${releases.length})` : titles[one]}
            </button>
          ))}
        </div>
        <h2 className="visually-hidden">{titles[show as keyof typeof titles]}</h2>
        {show === 'edit' && (
          <DraftForm
            key={version}
            described={described}
            start={start}
            editor={editor}
            known={blocks}
            onSaved={(saved) => {
              setStripped(saved.stripped)
              reload()
              setQuery({ version: undefined, try: String(saved.version) })
            }}
          />
        )}
        {stripped.length > 0 && <p className="meta">Code owns {stripped.join(', ')}: that was left out of what is stored.</p>}
        {show === 'compare' && <Compare described={described} versions={versions} />}
        {show === 'publish' && (
          <ReleaseForm
            key={`${version} ${release?.release ?? 0}`}
            described={described}
            versions={versions}
            version={version}
            editor={editor}
            onReleased={reload}
          />
        )}
        {show === 'releases' && <ReleaseList described={described} releases={releases} editor={editor} onReleased={reload} />}
        <h2>Versions</h2>
        <VersionList described={described} versions={versions} selected={version} />
      </section>
      <Try key={tried} agent={agent} version={tried} />
    </div>
  )
}

/** Two versions, field by field. */
function Compare({ described, versions }: { described: Described; versions: readonly Version[] }) {
  const { query } = usePlace()
  const from = numberOf(query.get('from')) ?? described.release?.version ?? 0
  const to = numberOf(query.get('to')) ?? described.latest?.version ?? 0
  const overridesOf = (number: number) => versions.find(({ version }) => version === number)?.overrides ?? {}
  const choice = (name: 'from' | 'to', value: number) => (
    <label>
      {name}{' '}
      <select value={value} onChange={(event) => setQuery({ [name]: event.target.value })}>
        {[...versions.map(({ version }) => version), 0].map((number) => (
          <option key={number} value={number}>
            {number === 0 ? 'code' : `version ${number}`}
          </option>
        ))}
      </select>
    </label>
  )
  return (
    <>
      <div className="choices">
        {choice('from', from)}
        {choice('to', to)}
      </div>
      <Differences changes={changesOf(described, overridesOf(from), overridesOf(to))} none="These give runs the same." />
    </>
  )
}

function numberOf(text: string | null): number | undefined {
  return text !== null && /^\d{1,9}$/.test(text) ? Number(text) : undefined
}
