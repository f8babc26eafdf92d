import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { useVirtualizer, type Virtualizer } from '@tanstack/react-virtual'
import type { Thread } from 'heed/react'
import { useShortcut } from '../app/keys.tsx'
import { RowMenu, type RowTarget } from './row-menu.tsx'
import { ErrorRow, RowView, type RowActions } from './row.tsx'
import type { History } from './history.ts'
import { rowsOf, type Row, type UIMessage } from './rows.ts'

/** Within this distance of the end, the transcript follows new rows. */
const followPx = 48

/** The messages of a thread. Only rows near the visible ones are in the page, and older messages are read when they are looked at. */
export function Transcript({ thread, history, actions, at, onFork }: TranscriptProps) {
  const { messages, error, writing, connection } = thread
  const rows = useMemo(() => rowsOf(messages), [messages])
  const scroller = useRef<HTMLDivElement>(null)
  const older = history.count
  const virtual = useVirtualizer({
    count: older + rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 56,
    getItemKey: useCallback((index: number) => (index < older ? `before ${index}` : (rows[index - older]?.key ?? index)), [rows, older]),
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
  usePlaced({ rows, history, at, virtual })
  const shown = virtual.getVirtualItems()
  const [first, last] = [shown[0]?.index ?? 0, shown.at(-1)?.index ?? 0]
  const { want } = history
  useEffect(() => {
    if (first < older) want(first, Math.min(last, older - 1))
  }, [first, last, older, want])
  const [target, setTarget] = useState<RowTarget>()
  return (
    <div className="transcript-frame">
      <div ref={scroller} className="transcript" role="log" aria-live="off" aria-label="Transcript" tabIndex={0}>
        <div className="transcript-space" style={{ height: virtual.getTotalSize() }}>
          {shown.map(({ index, key, start }) => {
            const row = rows[index - older]
            if (index >= older && !row) return null
            const message = index < older ? history.at(index) : undefined
            const messageId = row?.messageId ?? message?.id
            const isWriting = row !== undefined && messageId === writing && index === older + rows.length - 1
            return (
              <div
                key={key}
                ref={virtual.measureElement}
                data-index={index}
                data-message={messageId}
                className={`slot${isWriting ? ' is-writing' : ''}${messageId !== undefined && messageId === at ? ' is-linked' : ''}`}
                style={{ transform: `translateY(${start}px)` }}
              >
                {row ? (
                  <RowSlot row={row} actions={actions} onOpen={setTarget} />
                ) : (
                  <OlderMessage message={message} actions={actions} onOpen={setTarget} />
                )}
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

interface TranscriptProps {
  thread: Thread
  history: History
  actions: RowActions
  /** The message that the address names. */
  at: string | null
  onFork: (messageId: string) => void
}

interface SlotProps {
  actions: RowActions
  onOpen: (target: RowTarget) => void
}

function RowSlot({ row, actions, onOpen }: SlotProps & { row: Row }) {
  return (
    <>
      <RowView row={row} actions={actions} />
      {row.kind !== 'day' && row.key.split(' ').length < 3 && <RowMenu row={row} onOpen={onOpen} />}
    </>
  )
}

/** A message before the live view, with all its rows. An empty place while it is not loaded. */
function OlderMessage({ message, actions, onOpen }: SlotProps & { message: UIMessage | null | undefined }) {
  const rows = useMemo(() => (message ? rowsOf([message]) : []), [message])
  if (message === undefined) return <div className="row not-loaded" />
  const [first] = rows
  return (
    <>
      {rows.map((row) => (
        <RowView key={row.key} row={row} actions={actions} />
      ))}
      {first && <RowMenu row={first} onOpen={onOpen} />}
    </>
  )
}

interface Placing {
  rows: readonly Row[]
  history: History
  at: string | null
  virtual: Pick<Virtualizer<HTMLDivElement, Element>, 'scrollToIndex' | 'scrollToEnd'>
}

/** The first rows appear at the end of the thread, or at the message of the link, which may be far before them. */
function usePlaced({ rows, history, at, virtual }: Placing): void {
  const { count, placeOf } = history
  const isPlaced = useRef(false)
  useLayoutEffect(() => {
    if (isPlaced.current || rows.length === 0) return
    isPlaced.current = true
    const index = at === null ? -1 : rows.findIndex(({ messageId }) => messageId === at)
    if (index >= 0) virtual.scrollToIndex(count + index, { align: 'center' })
    else virtual.scrollToEnd()
  }, [rows, at, virtual, count])

  // A link to a message before the live view is followed once, when the number of those messages is known.
  const followed = useRef<string>(undefined)
  useEffect(() => {
    if (at === null || count === 0 || followed.current === at) return
    followed.current = at
    void placeOf(at)
      .catch(() => undefined)
      .then((place) => {
        if (place !== undefined && place < count) virtual.scrollToIndex(place, { align: 'center' })
      })
  }, [at, count, placeOf, virtual])
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
