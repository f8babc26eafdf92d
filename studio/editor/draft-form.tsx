import { useMemo, useState, type FormEvent } from 'react'
import type { EditorClient } from 'heed/client'
import { useAction } from '../app/query.ts'
import { Time } from '../app/time.tsx'
import { Failed } from '../parts/states.tsx'
import { Differences } from './difference.tsx'
import { InstructionBlocks } from './instruction-blocks.tsx'
import { Preview } from './preview.tsx'
import { blocksOf, changesOf, conflictOf, draftOf, overridesOf, type Described, type Draft, type Version } from './versions.ts'

/** What is typed outlives a change of the view. `base`: the latest version when it was begun. */
const typed = new Map<string, { draft: Draft; base: number }>()

/** Edits the instructions and tools on top of a version, and stores them as a draft. What is typed stays until it is stored. */
export function DraftForm({
  described,
  start,
  editor,
  known,
  onSaved,
}: {
  described: Described
  /** The ids of prompt blocks. */
  known: readonly string[]
  /** The version that the form begins with; null: code without overrides. */
  start: Version | null
  editor: EditorClient
  onSaved: (saved: { version: number; stripped: readonly string[] }) => void
}) {
  const { editable } = described
  const key = `${described.id} ${start?.version ?? 0}`
  const [begun, setBegun] = useState(
    () => typed.get(key) ?? { draft: draftOf(described, start?.overrides ?? {}), base: described.latest?.version ?? 0 },
  )
  const { draft, base } = begun
  const setDraft = (next: Draft) => {
    typed.set(key, { draft: next, base })
    setBegun({ draft: next, base })
  }
  const [why, setWhy] = useState('')
  const overrides = overridesOf(described, draft, start?.overrides ?? {})
  const save = useAction(async (on: number) => {
    const saved = await editor.save({ ...overrides, base: on, ...(why.trim() === '' ? {} : { why: why.trim() }) })
    typed.delete(key)
    setBegun({ draft, base: saved.version })
    setWhy('')
    onSaved(saved)
  })
  const conflict = conflictOf(save.error)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void save.run(base)
  }
  const isLocked = !editable.instructions && editable.tools === false
  return (
    <form className="draft-form" onSubmit={submit}>
      {isLocked && <p className="problem">Code lets nothing of this agent be edited.</p>}
      {typeof draft.instructions === 'string' ? (
        <>
          <label>
            <span>Instructions{editable.instructions ? '' : ' (code owns them)'}</span>
            <textarea
              rows={10}
              value={draft.instructions}
              readOnly={!editable.instructions}
              spellCheck
              onChange={(event) => setDraft({ ...draft, instructions: event.target.value })}
            />
          </label>
          {editable.instructions && (
            <div className="actions">
              <button type="button" onClick={() => setDraft({ ...draft, instructions: blocksOf(draft.instructions) })}>
                Split into blocks
              </button>
            </div>
          )}
        </>
      ) : (
        <InstructionBlocks blocks={draft.instructions} known={known} onChange={(instructions) => setDraft({ ...draft, instructions })} />
      )}
      <ToolFields described={described} draft={draft} onChange={setDraft} />
      <details open>
        <summary>What this changes {start === null ? 'of what code says' : `of version ${start.version}`}</summary>
        <Differences changes={changesOf(described, start?.overrides ?? {}, overrides)} none="Nothing." />
      </details>
      {editable.instructions && <Preview editor={editor} instructions={draft.instructions} />}
      <label>
        <span>Why</span>
        <input
          value={why}
          maxLength={4_096}
          placeholder="for those who read the list of versions"
          onChange={(event) => setWhy(event.target.value)}
        />
      </label>
      {conflict ? (
        <Conflict
          described={described}
          editor={editor}
          mine={overrides}
          base={base}
          conflict={conflict}
          isBusy={save.isBusy}
          onSave={() => void save.run(conflict.latest)}
        />
      ) : (
        <Failed error={save.error} />
      )}
      <div className="actions">
        <button type="submit" className="primary" disabled={isLocked || save.isBusy}>
          Save as a draft
        </button>
        <span className="meta">No run gets a draft. Try it, then publish it.</span>
      </div>
    </form>
  )
}

function ToolFields({ described, draft, onChange }: { described: Described; draft: Draft; onChange: (draft: Draft) => void }) {
  const { editable, code } = described
  if (code.tools.length === 0) return <p className="meta">This agent has no tools.</p>
  return (
    <fieldset className="tool-fields">
      <legend>Tools{editable.tools === false ? ' (code owns them)' : ''}</legend>
      {code.tools.map(({ name, description }) => {
        const tool = draft.tools[name] ?? { isIn: true, description }
        const change = (next: Partial<typeof tool>) => onChange({ ...draft, tools: { ...draft.tools, [name]: { ...tool, ...next } } })
        return (
          <div key={name} className="tool-field">
            <label>
              <input
                type="checkbox"
                checked={tool.isIn}
                disabled={editable.tools !== 'membership' || tool.variants !== undefined}
                onChange={(event) => change({ isIn: event.target.checked })}
              />{' '}
              <b className="tool-name">{name}</b>
            </label>
            {tool.variants && (
              <p className="meta">
                It has {tool.variants.length === 1 ? 'an override' : `${tool.variants.length} overrides`} for some requests.{' '}
                <button
                  type="button"
                  onClick={() => onChange({ ...draft, tools: { ...draft.tools, [name]: { isIn: true, description } } })}
                >
                  Remove the rules of {name}
                </button>
              </p>
            )}
            <textarea
              rows={2}
              aria-label={`Description of ${name}`}
              value={tool.description}
              readOnly={editable.tools === false}
              disabled={!tool.isIn || tool.variants !== undefined}
              onChange={(event) => change({ description: event.target.value })}
            />
          </div>
        )
      })}
    </fieldset>
  )
}

/** Another version was stored since this one was begun: what it changed, and what saving on top of it would change of it. */
function Conflict({
  described,
  editor,
  mine,
  base,
  conflict,
  isBusy,
  onSave,
}: {
  described: Described
  editor: EditorClient
  mine: Version['overrides']
  base: number
  conflict: NonNullable<ReturnType<typeof conflictOf>>
  isBusy: boolean
  onSave: () => void
}) {
  const [theirs, setTheirs] = useState<{ before: Version['overrides']; after: Version['overrides'] }>()
  const read = useAction(async () => {
    const [before, after] = await Promise.all([base === 0 ? undefined : editor.getVersion(base), editor.getVersion(conflict.latest)])
    setTheirs({ before: before?.overrides ?? {}, after: after.overrides })
  })
  const changed = useMemo(() => theirs && changesOf(described, theirs.before, theirs.after), [described, theirs])
  const lost = useMemo(() => theirs && changesOf(described, theirs.after, mine), [described, theirs, mine])
  return (
    <section className="card conflict" role="alert">
      <p>
        <b>
          {conflict.by ?? 'Someone'} stored version {conflict.latest}
        </b>{' '}
        <Time at={conflict.at} />
        {conflict.why === undefined ? '' : `: ${conflict.why}`}. Yours is not stored, and stays here.
      </p>
      {changed && (
        <>
          <h3>What version {conflict.latest} changed</h3>
          <Differences changes={changed} none="Nothing that runs get." />
          <h3>What yours would change of version {conflict.latest}</h3>
          <Differences changes={lost ?? []} none="Nothing." />
        </>
      )}
      <Failed error={read.error} />
      <div className="actions">
        {!theirs && (
          <button type="button" disabled={read.isBusy} onClick={() => void read.run()}>
            Show the difference
          </button>
        )}
        <button type="button" disabled={isBusy || !theirs} onClick={onSave}>
          Save mine on top of version {conflict.latest}
        </button>
      </div>
    </section>
  )
}
