import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { useVirtualizer } from '@tanstack/react-virtual'
import type { Thread } from 'heed/react'
import { useShortcut } from '../app/keys.tsx'
import { RowMenu, type RowTarget } from './row-menu.tsx'
import { ErrorRow, RowView, type RowActions } from './row.tsx'
import { rowsOf } from './rows.ts'

/** Within this distance of the end, the transcript follows new rows. */
const followPx = 48
/** Within this distance of the beginning, older messages are loaded. */
const loadPx = 800

/** The messages of a thread. Only rows near the visible ones are in the page. */
export function Transcript({
  thread,
  actions,
  at,
  onFork,
}: {
  thread: Thread
  actions: RowActions
  at: string | null
  onFork: (messageId: string) => void
}) {
  const { messages, hasOlder, loadOlder, error, writing, connection } = thread
  const rows = useMemo(() => rowsOf(messages), [messages])
  const scroller = useRef<HTMLDivElement>(null)
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 56,
    getItemKey: useCallback((index: number) => rows[index]?.key ?? index, [rows]),
    overscan: 12,
    anchorTo: 'end',
    followOnAppend: true,
    scrollEndThreshold: followPx,
    paddingStart: 12,
    paddingEnd: 16,
  })
  const unseen = useUnseen(rows.length, scroller)
  const toEnd = () => virtual.scrollToEnd()
  useShortcut('G', 'Go to the end', 'Thread', toEnd)

  // The first rows appear at the end of the thread, or at the message of the link.
  const isPlaced = useRef(false)
  useLayoutEffect(() => {
    if (isPlaced.current || rows.length === 0) return
    isPlaced.current = true
    const index = at === null ? -1 : rows.findIndex(({ messageId }) => messageId === at)
    if (index >= 0) virtual.scrollToIndex(index, { align: 'center' })
    else virtual.scrollToEnd()
  }, [rows, at, virtual])

  const isLoading = useRef(false)
  const onScroll = () => {
    const { scrollTop = 0 } = scroller.current ?? {}
    if (scrollTop > loadPx || !hasOlder || isLoading.current) return
    isLoading.current = true
    void loadOlder()
      .catch(() => {})
      .finally(() => {
        isLoading.current = false
      })
  }
  const [target, setTarget] = useState<RowTarget>()
  return (
    <div className="transcript-frame">
      <div ref={scroller} className="transcript" role="log" aria-live="off" aria-label="Transcript" tabIndex={0} onScroll={onScroll}>
        {hasOlder && <p className="meta older">Scroll up for older messages</p>}
        <div className="transcript-space" style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map(({ index, key, start }) => {
            const row = rows[index]
            if (!row) return null
            const isWriting = row.messageId === writing && index === rows.length - 1
            return (
              <div
                key={key}
                ref={virtual.measureElement}
                data-index={index}
                data-message={row.messageId}
                className={`slot${isWriting ? ' is-writing' : ''}${row.messageId === at ? ' is-linked' : ''}`}
                style={{ transform: `translateY(${start}px)` }}
              >
                <RowView row={row} actions={actions} />
                {row.kind !== 'day' && row.key.split(' ').length < 3 && <RowMenu row={row} onOpen={setTarget} />}
              </div>
            )
          })}
        </div>
        {error && <ErrorRow message={error.message} code={error.code} />}
      </div>
      {unseen > 0 && (
        <button type="button" className="unseen" onClick={toEnd}>
          {unseen} new below
        </button>
      )}
      {target && <RowMenu.Dialog target={target} onClose={() => setTarget(undefined)} onFork={onFork} />}
      <p className="visually-hidden" role="status">
        {connection === 'lost' ? 'Not connected' : thread.status}
      </p>
    </div>
  )
}

/** How many rows were appended while the reader looked elsewhere. */
function useUnseen(count: number, scroller: React.RefObject<HTMLDivElement | null>): number {
  const [unseen, setUnseen] = useState(0)
  const before = useRef(count)
  useEffect(() => {
    const element = scroller.current
    if (!element) return
    const isAtEnd = element.scrollHeight - element.scrollTop - element.clientHeight < followPx * 2
    // A page of older messages is no news.
    const added = count - before.current
    before.current = count
    setUnseen((known) => (isAtEnd ? 0 : added > 0 && added < 20 ? known + added : known))
  }, [count, scroller])
  useEffect(() => {
    const element = scroller.current
    if (!element) return
    const onScroll = () => {
      if (element.scrollHeight - element.scrollTop - element.clientHeight < followPx) setUnseen(0)
    }
    element.addEventListener('scroll', onScroll, { passive: true })
    return () => element.removeEventListener('scroll', onScroll)
  }, [scroller])
  return unseen
}
