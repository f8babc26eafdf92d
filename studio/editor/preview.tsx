import { useState } from 'react'
import type { EditorClient, InstructionBlock } from 'heed/client'
import { useAction } from '../app/query.ts'
import { Failed } from '../parts/states.tsx'
import { jsonOf } from '../workflows/json-field.ts'

/** What a run with a request context would read of the instructions, before they are saved. */
export function Preview({ editor, instructions }: { editor: EditorClient; instructions: string | InstructionBlock[] }) {
  const [context, setContext] = useState('')
  const [drafts, setDrafts] = useState(true)
  const [shown, setShown] = useState<Awaited<ReturnType<EditorClient['preview']>>>()
  const preview = useAction(async () => {
    const requestContext = jsonOf('request context', context) as Record<string, unknown> | undefined
    setShown(await editor.preview({ instructions, drafts, ...(requestContext && { requestContext }) }))
  })
  const left = shown?.blocks.flatMap(({ text }, at) => (text === null ? [at + 1] : [])) ?? []
  return (
    <details>
      <summary>What a run would read</summary>
      <label>
        <span>Request context, as JSON</span>
        <input value={context} placeholder='{"plan": "pro"}' onChange={(event) => setContext(event.target.value)} />
      </label>
      <label>
        <input type="checkbox" checked={drafts} onChange={(event) => setDrafts(event.target.checked)} /> drafts of prompt blocks too
      </label>
      <div className="actions">
        <button type="button" disabled={preview.isBusy} onClick={() => void preview.run()}>
          Show
        </button>
      </div>
      <Failed error={preview.error} />
      {shown && !preview.error && (
        <>
          <pre className="difference preview-text">{shown.text}</pre>
          <p className="meta">
            {shown.isCode && 'The rules leave no block: this is what code says. '}
            {left.length > 0 && !shown.isCode && `Left out by rules: block ${left.join(', ')}. `}
            {shown.unset.length > 0 && `Without a value or a default: ${shown.unset.join(', ')}.`}
          </p>
        </>
      )}
    </details>
  )
}
