import { useState } from 'react'
import type { EditorClient } from 'heed/client'
import { useAction } from '../app/query.ts'
import { setQuery } from '../app/router.tsx'
import { Time } from '../app/time.tsx'
import { Failed } from '../parts/states.tsx'
import { ruleText, stateOf, type Described, type Release, type Version } from './versions.ts'

/** All versions, newest first: what runs get of them, who made them, when and why. */
export function VersionList({ described, versions, selected }: { described: Described; versions: readonly Version[]; selected: number }) {
  return (
    <table className="list versions-list">
      <caption className="visually-hidden">Versions</caption>
      <thead>
        <tr>
          {['Version', 'State', 'By', 'Why', 'Actions'].map((title) => (
            <th key={title} scope="col">
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {versions.map(({ version, base, by, why, createdAt }) => (
          <tr key={version} className={selected === version ? 'is-selected' : ''}>
            <td>
              <b>{version}</b> <span className="meta">on {base === 0 ? 'code' : base}</span>
            </td>
            <td>
              <State version={version} described={described} />
            </td>
            <td>
              {by}{' '}
              <span className="meta">
                <Time at={createdAt} />
              </span>
            </td>
            <td>{why}</td>
            <td className="actions">
              <VersionActions version={version} base={base} />
            </td>
          </tr>
        ))}
        <tr className={selected === 0 ? 'is-selected' : ''}>
          <td>
            <b>code</b>
          </td>
          <td>
            <State version={0} described={described} />
          </td>
          <td />
          <td />
          <td className="actions">
            <VersionActions version={0} />
          </td>
        </tr>
      </tbody>
    </table>
  )
}

function State({ version, described }: { version: number; described: Described }) {
  const state = stateOf(version, described)
  return <span className={`chip ${state === 'published' ? 'is-open' : state === 'draft' ? 'is-asking' : ''}`}>{state}</span>
}

function VersionActions({ version, base }: { version: number; base?: number }) {
  const name = version === 0 ? 'code' : `version ${version}`
  return (
    <>
      <button
        type="button"
        className="quiet"
        aria-label={`Edit on top of ${name}`}
        onClick={() => setQuery({ version: String(version), show: undefined })}
      >
        Edit
      </button>
      <button type="button" className="quiet" aria-label={`Try ${name}`} onClick={() => setQuery({ try: String(version) })}>
        Try
      </button>
      {base !== undefined && (
        <button
          type="button"
          className="quiet"
          aria-label={`Compare ${name}`}
          onClick={() => setQuery({ show: 'compare', from: String(base), to: String(version) })}
        >
          Compare
        </button>
      )}
      <button
        type="button"
        className="quiet"
        aria-label={`Publish ${name}`}
        onClick={() => setQuery({ show: 'publish', version: String(version) })}
      >
        Publish
      </button>
    </>
  )
}

/** Who changed what runs get, when, why and to what. */
export function ReleaseList({
  described,
  releases,
  editor,
  onReleased,
}: {
  described: Described
  releases: readonly Release[]
  editor: EditorClient
  onReleased: () => void
}) {
  const [why, setWhy] = useState('')
  const rollBack = useAction(async (to?: number) => {
    const expected = described.release?.release ?? 0
    await editor.rollBack({ expected, ...(to === undefined ? {} : { to }), ...(why.trim() === '' ? {} : { why: why.trim() }) })
    setWhy('')
    onReleased()
  })
  if (releases.length === 0) return <p className="meta">Nothing was published yet: runs get what code says.</p>
  return (
    <>
      <div className="actions">
        <button type="button" disabled={rollBack.isBusy} onClick={() => void rollBack.run()}>
          Roll back to the release before
        </button>
        <input
          aria-label="Why it is rolled back"
          placeholder="Why"
          maxLength={4_096}
          value={why}
          onChange={(event) => setWhy(event.target.value)}
        />
      </div>
      <Failed error={rollBack.error} />
      <ol className="history releases">
        {releases.map((release, index) => (
          <li key={release.release}>
            <p>
              <b>Release {release.release}</b>: all runs get {versionName(release.version)}
              {release.restores === undefined ? '' : ` (rolled back to ${release.restores === 0 ? 'code' : `release ${release.restores}`})`}
              {index === 0 && <span className="chip is-open">counts now</span>}
            </p>
            {release.rules?.map((rule, at) => (
              <p key={at} className="meta">
                {versionName(rule.version)} for {ruleText(rule)}
              </p>
            ))}
            <p className="meta">
              {release.by}, <Time at={release.createdAt} />
              {release.why === undefined ? '' : `: ${release.why}`}
            </p>
            {index > 0 && (
              <button type="button" className="quiet" disabled={rollBack.isBusy} onClick={() => void rollBack.run(release.release)}>
                Roll back to release {release.release}
              </button>
            )}
          </li>
        ))}
      </ol>
    </>
  )
}

export function versionName(version: number): string {
  return version === 0 ? 'what code says' : `version ${version}`
}
