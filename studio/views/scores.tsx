import { useLive } from '../app/live.tsx'
import { useQuery } from '../app/query.ts'
import { Link, setQuery, usePlace } from '../app/router.tsx'
import { useSession } from '../app/session.tsx'
import { Time } from '../app/time.tsx'
import { Empty, Failed, Loading } from '../parts/states.tsx'
import { listMs } from './thread-list.ts'
import { ScoreValue, type Score } from './score.tsx'

const states = ['pending', 'scored', 'not_scorable', 'failed'] as const
const perPage = 100

/** The scores of runs, newest first. */
export function ScoresView() {
  const { client, agents } = useSession()
  const { query } = usePlace()
  const filters = { agentId: query.get('agent') ?? '', scorerId: query.get('scorer') ?? '', state: query.get('state') ?? '' }
  const before = query.get('before')
  const { data, error, isLoading, reload } = useQuery(
    `scores ${JSON.stringify(filters)} ${before}`,
    () => {
      const given = Object.entries(filters).filter(([, value]) => value !== '')
      return client.listScores({ limit: perPage, ...Object.fromEntries(given), ...(before === null ? {} : { before: Number(before) }) })
    },
    // A run that ends changes its thread, and its scores are stored later.
    useLive(undefined, listMs),
  )
  const isFiltered = Object.values(filters).some((value) => value !== '')
  return (
    <div className="page">
      <header className="page-head">
        <h1>Scores</h1>
      </header>
      <div className="filters" role="search">
        <select aria-label="Agent" value={filters.agentId} onChange={(event) => setQuery({ agent: event.target.value, before: undefined })}>
          <option value="">any agent</option>
          {agents.map(({ id }) => (
            <option key={id} value={id}>
              {id}
            </option>
          ))}
        </select>
        <input
          type="search"
          aria-label="Scorer"
          placeholder="Id of a scorer"
          value={filters.scorerId}
          onChange={(event) => setQuery({ scorer: event.target.value, before: undefined })}
        />
        <select aria-label="State" value={filters.state} onChange={(event) => setQuery({ state: event.target.value, before: undefined })}>
          <option value="">any state</option>
          {states.map((one) => (
            <option key={one} value={one}>
              {one.replace('_', ' ')}
            </option>
          ))}
        </select>
      </div>
      <Failed error={error} onRetry={reload} />
      {isLoading && <Loading />}
      {data?.scores.length === 0 &&
        (isFiltered ? (
          <Empty title="No score matches.">
            <button type="button" onClick={() => setQuery({ agent: undefined, scorer: undefined, state: undefined, before: undefined })}>
              Clear filters
            </button>
          </Empty>
        ) : (
          <Empty title="No scores yet.">
            <p>
              An agent with <code>scorers</code> is scored after its runs.
            </p>
          </Empty>
        ))}
      {data !== undefined && data.scores.length > 0 && <ScoreTable scores={data.scores} />}
      {(before !== null || data?.next !== undefined) && (
        <nav className="pages" aria-label="Pages">
          <button type="button" disabled={before === null} onClick={() => setQuery({ before: undefined })}>
            Newest
          </button>
          <button type="button" disabled={data?.next === undefined} onClick={() => setQuery({ before: String(data?.next) }, {})}>
            Older
          </button>
        </nav>
      )}
    </div>
  )
}

function ScoreTable({ scores }: { scores: readonly Score[] }) {
  return (
    <table className="list">
      <thead>
        <tr>
          {['Scorer', 'Score', 'Why', 'Thread', 'Agent', 'Run ended'].map((title) => (
            <th key={title} scope="col">
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {scores.map((score) => (
          <tr key={score.key}>
            <td>
              <b>{score.scorerId}</b> <span className="meta">{score.version}</span>
            </td>
            <td>
              <ScoreValue score={score} />
            </td>
            <td>{score.reason ?? (score.error === undefined ? '' : String(score.error.message ?? score.error.code ?? ''))}</td>
            <td>
              <Link className="mono" to={['threads', score.threadId]} query={{ panel: 'runs' }}>
                {score.threadId}
              </Link>
            </td>
            <td className="mono">{score.agentId}</td>
            <td className="meta">
              <Time at={score.createdAt} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
