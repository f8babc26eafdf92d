import { useMemo, useState, type FormEvent } from 'react'
import type { ContextRules, PromptBlocksClient, RemotePromptBlock } from 'heed/client'
import { useAction, useQuery } from '../app/query.ts'
import { Link, navigate, hrefOf, usePlace } from '../app/router.tsx'
import { useSession } from '../app/session.tsx'
import { Time } from '../app/time.tsx'
import { Empty, Failed, Loading } from '../parts/states.tsx'
import { Differences } from './difference.tsx'
import { RulesField } from './instruction-blocks.tsx'
import { conflictOf, type FieldChange } from './versions.ts'

const perList = 100

/** The prompt blocks of the server, or of an agent with a storage of its own, which `agent` of the address names. */
function usePrompts(): { prompts: PromptBlocksClient; query: { agent?: string } } {
  const { client } = useSession()
  const agent = usePlace().query.get('agent') ?? undefined
  return useMemo(() => {
    const query = agent === undefined ? {} : { agent }
    return { prompts: client.prompts(agent === undefined ? {} : { agentId: agent }), query }
  }, [client, agent])
}

/** Pieces of instructions that agents share. */
export function PromptBlocksView() {
  const { prompts, query } = usePrompts()
  const [id, setId] = useState('')
  const { data, error, isLoading, reload } = useQuery(`prompt blocks ${query.agent ?? ''}`, () => prompts.list({ limit: perList }))
  if (isLoading) return <Loading />
  if (!data) return <Failed error={error} onRetry={reload} />
  const create = (event: FormEvent) => {
    event.preventDefault()
    navigate(hrefOf(['prompt-blocks', id.trim()], query))
  }
  return (
    <div className="page">
      <header className="page-head">
        <h1>Prompt blocks</h1>
      </header>
      <p className="meta">Pieces of instructions that agents share. A version of an agent refers to them by their ids.</p>
      <form className="actions" onSubmit={create}>
        <input
          aria-label="Id of the new block"
          value={id}
          placeholder="tone"
          required
          pattern="[A-Za-z0-9][A-Za-z0-9._\-]{0,127}"
          onChange={(event) => setId(event.target.value)}
        />
        <button type="submit">New block</button>
      </form>
      {data.blocks.length === 0 ? (
        <Empty title="There are no prompt blocks yet." />
      ) : (
        <table className="list">
          <thead>
            <tr>
              <th>Block</th>
              <th>Runs get</th>
              <th>Latest</th>
              <th>Agents</th>
            </tr>
          </thead>
          <tbody>
            {data.blocks.map((block) => (
              <tr key={block.id}>
                <td>
                  <Link to={['prompt-blocks', block.id]} query={query}>
                    {block.id}
                  </Link>{' '}
                  <span className="meta">{block.latest.block.description}</span>
                </td>
                <td>{block.release ? `version ${block.release.version}` : 'nothing: it is not published'}</td>
                <td>
                  version {block.latest.version}
                  {block.isDraft ? ', a draft' : ''} by {block.latest.by}, <Time at={block.latest.createdAt} />
                </td>
                <td>{block.agents.join(', ')}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  )
}

interface Block {
  content: string
  rules?: ContextRules
  description?: string
}

type Versions = Awaited<ReturnType<PromptBlocksClient['listVersions']>>['versions']
type Releases = Awaited<ReturnType<PromptBlocksClient['listReleases']>>['releases']

/** One prompt block: edit, compare, publish, roll back. */
export function PromptBlockPage({ id }: { id: string }) {
  const { prompts, query } = usePrompts()
  const { data, error, isLoading, reload } = useQuery(`prompt block ${query.agent ?? ''} ${id}`, async () => {
    const [{ versions }, { releases }] = await Promise.all([
      prompts.listVersions(id, { limit: perList }),
      prompts.listReleases(id, { limit: perList }),
    ])
    return { versions, releases, described: versions.length === 0 ? undefined : await prompts.describe(id) }
  })
  if (isLoading) return <Loading />
  if (!data) return <Failed error={error} onRetry={reload} />
  const { versions, releases, described } = data
  return (
    <div className="page">
      <header className="page-head">
        <h1>
          <Link to={['prompt-blocks']} query={query}>
            Prompt blocks
          </Link>{' '}
          {id}
        </h1>
      </header>
      {described && <About described={described} />}
      <BlockForm key={versions[0]?.version ?? 0} id={id} versions={versions} prompts={prompts} onSaved={reload} />
      {described && <Publish id={id} versions={versions} releases={releases} prompts={prompts} onReleased={reload} />}
    </div>
  )
}

function About({ described: { release, agents, isDraft, latest } }: { described: RemotePromptBlock }) {
  return (
    <p>
      Runs get <b>{release ? `version ${release.version}` : 'nothing: it is not published'}</b>.
      {isDraft && ` Version ${latest.version} is a draft.`}
      {agents.length > 0 && ` In the instructions of ${agents.join(', ')}.`}
    </p>
  )
}

function BlockForm({
  id,
  versions,
  prompts,
  onSaved,
}: {
  id: string
  versions: Versions
  prompts: PromptBlocksClient
  onSaved: () => void
}) {
  const before: Block = versions[0]?.block ?? { content: '' }
  const [block, setBlock] = useState(before)
  const [why, setWhy] = useState('')
  const save = useAction(async () => {
    const { description, ...rest } = block
    const about = description === undefined || description.trim() === '' ? {} : { description }
    await prompts.save(id, { ...rest, ...about, base: versions[0]?.version ?? 0, ...(why.trim() === '' ? {} : { why: why.trim() }) })
    onSaved()
  })
  const conflict = conflictOf(save.error)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void save.run()
  }
  return (
    <form className="draft-form" onSubmit={submit}>
      <label>
        <span>Text</span>
        <textarea rows={8} value={block.content} spellCheck onChange={(event) => setBlock({ ...block, content: event.target.value })} />
      </label>
      <div className="tool-field">
        <span className="meta">Only for requests with, as JSON; nothing: for all</span>
        <RulesField
          name="Rules"
          rules={block.rules}
          onChange={({ rules }) => {
            const { rules: _, ...rest } = block
            setBlock(rules ? { ...rest, rules } : rest)
          }}
        />
      </div>
      <label>
        <span>Description, for those who edit it</span>
        <input
          value={block.description ?? ''}
          maxLength={4_096}
          onChange={(event) => setBlock({ ...block, description: event.target.value })}
        />
      </label>
      <details open>
        <summary>What this changes of {versions[0] ? `version ${versions[0].version}` : 'nothing'}</summary>
        <Differences changes={differences(before, block)} none="Nothing." />
      </details>
      <label>
        <span>Why</span>
        <input value={why} maxLength={4_096} onChange={(event) => setWhy(event.target.value)} />
      </label>
      {conflict ? (
        <section className="card conflict" role="alert">
          <p>
            <b>
              {conflict.by ?? 'Someone'} stored version {conflict.latest}
            </b>{' '}
            <Time at={conflict.at} />. Yours is not stored, and stays here. Copy it, and load the page again.
          </p>
        </section>
      ) : (
        <Failed error={save.error} />
      )}
      <div className="actions">
        <button type="submit" className="primary" disabled={save.isBusy}>
          Save as a draft
        </button>
      </div>
    </form>
  )
}

function Publish({
  id,
  versions,
  releases,
  prompts,
  onReleased,
}: {
  id: string
  versions: Versions
  releases: Releases
  prompts: PromptBlocksClient
  onReleased: () => void
}) {
  const expected = releases[0]?.release ?? 0
  const publish = useAction(async (version: number) => {
    await prompts.publish(id, { version, expected })
    onReleased()
  })
  const rollBack = useAction(async () => {
    await prompts.rollBack(id, { expected })
    onReleased()
  })
  return (
    <>
      <h2>Versions</h2>
      <Failed error={publish.error ?? rollBack.error} />
      <ul className="releases">
        {versions.map(({ version, by, why, createdAt }) => (
          <li key={version}>
            Version {version} by {by}, <Time at={createdAt} />
            {why === undefined ? '' : `: ${why}`}{' '}
            {releases[0]?.version === version ? (
              <b>runs get it</b>
            ) : (
              <button type="button" disabled={publish.isBusy} onClick={() => void publish.run(version)}>
                Publish version {version}
              </button>
            )}
          </li>
        ))}
      </ul>
      <h2>Releases</h2>
      {releases.length > 1 && (
        <div className="actions">
          <button type="button" disabled={rollBack.isBusy} onClick={() => void rollBack.run()}>
            Roll back to the release before
          </button>
        </div>
      )}
      <ul className="releases">
        {releases.map(({ release, version, by, why, createdAt, restores }) => (
          <li key={release}>
            Release {release}: version {version}
            {restores === undefined ? '' : ` (rolled back to release ${restores})`} by {by}, <Time at={createdAt} />
            {why === undefined ? '' : `: ${why}`}
          </li>
        ))}
      </ul>
    </>
  )
}

function differences(from: Block, to: Block): FieldChange[] {
  const textOf = (rules: ContextRules | undefined) => (rules ? JSON.stringify(rules) : '')
  const fields = [
    { field: 'text', from: from.content, to: to.content },
    { field: 'rules', from: textOf(from.rules), to: textOf(to.rules) },
    { field: 'description', from: from.description ?? '', to: to.description ?? '' },
  ]
  return fields.filter((one) => one.from !== one.to)
}
