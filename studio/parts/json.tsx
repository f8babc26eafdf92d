import { memo } from 'react'

const maxLine = 160
const maxShown = 32_000

/** A value on one line, cut where it is long. */
export function inline(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  return text.length > maxLine ? `${text.slice(0, maxLine)}…` : text
}

/** A value as indented JSON. A long one is cut until it is opened. */
export const Json = memo(function Json({ value }: { value: unknown }) {
  const text = typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? 'undefined')
  if (text.length <= maxShown) return <pre className="json">{text}</pre>
  return (
    <>
      <pre className="json">{text.slice(0, maxShown)}…</pre>
      <details>
        <summary>Show all {Math.ceil(text.length / 1_000)} kB</summary>
        <pre className="json">{text}</pre>
      </details>
    </>
  )
})

/** On one line where it is short. */
function compact(value: unknown): string {
  const line = JSON.stringify(value) ?? 'undefined'
  return line.length <= 72 ? line : JSON.stringify(value, null, 2)
}

/** The fields of an object as a table, so that each value is read whole; anything else as JSON. */
export function Fields({ value }: { value: unknown }) {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || Object.keys(value).length === 0) return <Json value={value} />
  return (
    <table className="fields">
      <tbody>
        {Object.entries(value).map(([name, field]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>
              <pre>{typeof field === 'string' ? field : compact(field)}</pre>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}
