import { useState, type FormEvent } from 'react'
import type { EditorClient } from 'heed/client'
import { useAction } from '../app/query.ts'
import { Time } from '../app/time.tsx'
import { Failed } from '../parts/states.tsx'
import { conflictOf, type Described, type Rule, type Version } from './versions.ts'

/** A rule as it is typed: resources one a line, the context as JSON, so that a rule that is opened and published again stays as it is. */
interface TypedRule {
  version: string
  resources: string
  context: string
  percent: string
}

const emptyRule: TypedRule = { version: '', resources: '', context: '', percent: '' }

function typed({ version, resources, context, percent }: Rule): TypedRule {
  return {
    version: String(version),
    resources: resources?.join('\n') ?? '',
    context: context === undefined ? '' : JSON.stringify(context),
    percent: percent === undefined ? '' : String(percent),
  }
}

function ruleOf({ version, resources, context, percent }: TypedRule, at: number): Rule {
  const ids = resources
    .split('\n')
    .map((one) => one.trim())
    .filter((one) => one !== '')
  return {
    version: Number(version),
    ...(ids.length === 0 ? {} : { resources: ids }),
    ...(context.trim() === '' ? {} : { context: contextOf(context, at) }),
    ...(percent.trim() === '' ? {} : { percent: Number(percent) }),
  }
}

function contextOf(text: string, at: number): NonNullable<Rule['context']> {
  try {
    return JSON.parse(text) as NonNullable<Rule['context']>
  } catch {
    throw new Error(`The context of rule ${at + 1} must be JSON: for each key the values that fit, such as {"plan": ["pro", "team"]}.`)
  }
}

/** Which runs get which version from now on: one for all, and rules for some. */
export function ReleaseForm({
  described,
  versions,
  version,
  editor,
  onReleased,
}: {
  described: Described
  versions: readonly Version[]
  version: number
  editor: EditorClient
  onReleased: () => void
}) {
  const { release } = described
  const expected = release?.release ?? 0
  const [chosen, setChosen] = useState(version)
  const [rules, setRules] = useState<readonly TypedRule[]>(() => (release?.rules ?? []).map(typed))
  const [why, setWhy] = useState('')
  const publish = useAction(async () => {
    const given = rules.map(ruleOf)
    await editor.publish({
      version: chosen,
      expected,
      ...(given.length === 0 ? {} : { rules: given }),
      ...(why.trim() === '' ? {} : { why: why.trim() }),
    })
    setWhy('')
    onReleased()
  })
  const conflict = conflictOf(publish.error)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    void publish.run()
  }
  const change = (at: number, next: Partial<TypedRule>) =>
    setRules(rules.map((rule, index) => (index === at ? { ...rule, ...next } : rule)))
  const numbers = [...versions.map((one) => one.version), 0]
  return (
    <form className="draft-form" onSubmit={submit} aria-label="Publish">
      <label>
        <span>All runs get</span>
        <select value={chosen} onChange={(event) => setChosen(Number(event.target.value))}>
          {numbers.map((one) => (
            <option key={one} value={one}>
              {one === 0 ? 'what code says' : `version ${one}`}
            </option>
          ))}
        </select>
      </label>
      {rules.map((rule, at) => (
        <RuleFields
          key={at}
          at={at}
          rule={rule}
          numbers={numbers}
          onChange={(next) => change(at, next)}
          onRemove={() => setRules(rules.filter((_, index) => index !== at))}
        />
      ))}
      <div className="actions">
        <button type="button" onClick={() => setRules([...rules, { ...emptyRule, version: String(numbers[0] ?? 0) }])}>
          Add a rule for some runs
        </button>
        {rules.length > 0 && <span className="meta">The first rule that fits a run decides. All conditions of a rule must hold.</span>}
      </div>
      <label>
        <span>Why</span>
        <input value={why} maxLength={4_096} onChange={(event) => setWhy(event.target.value)} />
      </label>
      {conflict ? (
        <section className="card conflict" role="alert">
          <p>
            <b>
              {conflict.by ?? 'Someone'} made release {conflict.latest}
            </b>{' '}
            <Time at={conflict.at} />
            {conflict.why === undefined ? '' : `: ${conflict.why}`}. Yours is not made. Read theirs, and publish again if you want to.
          </p>
          <button type="button" onClick={onReleased}>
            Read the releases again
          </button>
        </section>
      ) : (
        <Failed error={publish.error} />
      )}
      <div className="actions">
        <button type="submit" className="primary" disabled={publish.isBusy}>
          Publish
        </button>
        <span className="meta">Runs that have begun keep the version that they have.</span>
      </div>
    </form>
  )
}

function RuleFields({
  at,
  rule,
  numbers,
  onChange,
  onRemove,
}: {
  at: number
  rule: TypedRule
  numbers: readonly number[]
  onChange: (next: Partial<TypedRule>) => void
  onRemove: () => void
}) {
  return (
    <fieldset className="rule columns">
      <legend>Rule {at + 1}</legend>
      <label>
        Version
        <select value={rule.version} onChange={(event) => onChange({ version: event.target.value })}>
          {numbers.map((one) => (
            <option key={one} value={one}>
              {one === 0 ? 'code' : one}
            </option>
          ))}
        </select>
      </label>
      <label>
        Resources, one a line
        <textarea rows={2} value={rule.resources} placeholder="acme" onChange={(event) => onChange({ resources: event.target.value })} />
      </label>
      <label>
        Request context, as JSON
        <textarea
          rows={2}
          value={rule.context}
          placeholder='{"plan": ["pro", "team"]}'
          onChange={(event) => onChange({ context: event.target.value })}
        />
      </label>
      <label>
        Percent of resources
        <input inputMode="decimal" value={rule.percent} placeholder="20" onChange={(event) => onChange({ percent: event.target.value })} />
      </label>
      <button type="button" className="quiet" onClick={onRemove}>
        Remove rule {at + 1}
      </button>
    </fieldset>
  )
}
