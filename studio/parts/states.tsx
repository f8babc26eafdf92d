import type { ReactNode } from 'react'
import { isHeedError } from 'heed/client'

/** A view without content: what it is for, and what to do next. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <p className="empty-title">{title}</p>
      {children}
    </div>
  )
}

/** Why something could not be shown or done. The code is what docs and the log name. */
export function Failed({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  if (error === undefined || error === null) return null
  const code = isHeedError(error) ? error.code : undefined
  const message =
    code === 'forbidden' || code === undefined
      ? describe(error)
      : isMissing(code)
        ? `Not here, or not yours. ${describe(error)}`
        : describe(error)
  return (
    <div className="failed" role="alert">
      <span>{message}</span>
      {code !== undefined && <code>{code}</code>}
      {onRetry && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  )
}

function isMissing(code: string): boolean {
  return code === 'thread_not_found' || code === 'not_found'
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Rows of the height of what is loading. They appear late, so that a fast answer shows none. */
export function Loading({ rows = 4 }: { rows?: number }) {
  return (
    <div className="loading" aria-busy="true" aria-label="Loading">
      {Array.from({ length: rows }, (_, index) => (
        <div key={index} className="loading-row" />
      ))}
    </div>
  )
}

export function Status({ status }: { status: string }) {
  return (
    <span className={`status status-${status}`}>
      <i aria-hidden="true" />
      {status}
    </span>
  )
}

/** Text that someone outside wrote: plain, fenced and labelled, never Markdown or links. */
export function OutsideText({ children, label = 'outside text' }: { children: string; label?: string }) {
  return (
    <figure className="outside">
      <figcaption>{label}</figcaption>
      <pre>{children}</pre>
    </figure>
  )
}
