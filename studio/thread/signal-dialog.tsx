import { useEffect, useRef } from 'react'
import { SignalForm } from './signal-form.tsx'

/** Sends any kind of signal to the thread by hand. */
export function SignalDialog({
  scope,
  agentId,
  onClose,
}: {
  scope: { threadId: string; resourceId?: string }
  agentId: string
  onClose: () => void
}) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog ref={dialog} className="card dialog" onClose={onClose} aria-labelledby="signal-title">
      <h2 id="signal-title">Send a signal</h2>
      <SignalForm scope={scope} agentId={agentId} onSent={() => {}} />
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  )
}
