import { useEffect, useRef } from 'react'
import { hrefOf, Link, usePlace } from '../app/router.tsx'
import { Json } from '../parts/json.tsx'
import type { Row } from './rows.ts'

export interface RowTarget {
  row: Row
}

/** Opens what can be done with a row. */
export function RowMenu({ row, onOpen }: { row: Row; onOpen: (target: RowTarget) => void }) {
  return (
    <button type="button" className="row-menu" aria-label="More about this row" title="Link, fork, raw" onClick={() => onOpen({ row })}>
      ⋯
    </button>
  )
}

RowMenu.Dialog = function RowDialog({
  target: { row },
  onClose,
  onFork,
}: {
  target: RowTarget
  onClose: () => void
  onFork: (messageId: string) => void
}) {
  const dialog = useRef<HTMLDialogElement>(null)
  const {
    segments: [, threadId = ''],
  } = usePlace()
  useEffect(() => dialog.current?.showModal(), [])
  const copy = () => {
    void navigator.clipboard.writeText(window.location.origin + hrefOf(['threads', threadId], { at: row.messageId }))
    onClose()
  }
  const isSignal =
    row.kind === 'user' || row.kind === 'signal' || row.kind === 'state' || row.kind === 'notification' || row.kind === 'watch'
  return (
    <dialog ref={dialog} className="card dialog" onClose={onClose} aria-labelledby="row-title">
      <h2 id="row-title">
        {row.kind} <code>{row.messageId}</code>
      </h2>
      <div className="actions">
        <button type="button" onClick={copy}>
          Copy link
        </button>
        <button type="button" onClick={() => onFork(row.messageId)}>
          Fork from here
        </button>
        {isSignal && (
          <Link className="button" to={['threads', threadId, 'signals', row.messageId]}>
            Explain
          </Link>
        )}
        <button type="button" onClick={onClose}>
          Close
        </button>
      </div>
      <Json value={row} />
    </dialog>
  )
}
