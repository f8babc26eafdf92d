import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState, type ReactNode } from 'react'
import { useVirtualizer, type Virtualizer } from '@tanstack/react-virtual'
import type { Thread } from 'heed/react'
import { useShortcut } from '../app/keys.tsx'
import { RowMenu, type RowTarget } from './row-menu.tsx'
import { ErrorRow, RowView, type RowActions } from './row.tsx'
import type { History } from './history.ts'
import { rowsOf, type Row, type UIMessage } from './rows.ts'

/** Within this distance of the end, the transcript follows new rows. */
const followPx = 48

/**
 * Older messages are placed and measured in blocks of so many. Each size that becomes known moves everything below it: the work of a scroll
 * grows with the number of sizes and of places, and blocks have fewer of both.
 */
const perBlock = 6
const rowPx = 56

/** The messages of a thread. Only rows near the visible ones are in the page, and older messages are read when they are looked at. */
export function Transcript({ thread, history, actions, at, onFork }: TranscriptProps) {
  const { messages, error, writing, connection } = thread
  const rows = useMemo(() => rowsOf(messages), [messages])
  const scroller = useRef<HTMLDivElement>(null)
  const older = history.count
  const blocks = Math.ceil(older / perBlock)
  const keys = useSame(rows.map(({ key }) => key))
  const virtual = useVirtualizer({
    count: blocks + rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: (index) => (index < blocks ? Math.min(perBlock, older - index * perBlock) * rowPx : rowPx),
    getItemKey: useCallback((index: number) => (index < blocks ? index : (keys[index - blocks] ?? index)), [keys, blocks]),
    overscan: 4,
    anchorTo: 'end',
    followOnAppend: true,
    scrollEndThreshold: followPx,
    paddingStart: 12,
    paddingEnd: 16,
  })
  const unseen = useUnseen(rows.length, scroller)
  const toEnd = () => virtual.scrollToEnd()
  useShortcut('G', 'Go to the end', 'Thread', toEnd)
  usePlaced({ rows, blocks, history, at, virtual })
  const shown = virtual.getVirtualItems()
  const [first, last] = [shown[0]?.index ?? 0, shown.at(-1)?.index ?? 0]
  const { want } = history
  useEffect(() => {
    if (first < blocks) want(first * perBlock, Math.min((last + 1) * perBlock, older) - 1)
  }, [first, last, blocks, older, want])
  const [target, setTarget] = useState<RowTarget>()
  const reveal = useRevealed(at)
  return (
    <div className="transcript-frame">
      <div ref={scroller} className="transcript" role="log" aria-live="off" aria-label="Transcript" tabIndex={0}>
        <div className="transcript-space" style={{ height: virtual.getTotalSize() }}>
          {shown.map(({ index, key, start }) => {
            const row = rows[index - blocks]
            if (index >= blocks && !row) return null
            const places = row ? [] : placesOf(index, older)
            const style = { transform: `translateY(${start}px)` }
            return (
              <div key={key} ref={virtual.measureElement} data-index={index} className="block" style={style}>
                {row && (
                  <Slot messageId={row.messageId} at={at} isWriting={row.messageId === writing && index === blocks + rows.length - 1}>
                    <RowSlot row={row} actions={actions} onOpen={setTarget} />
                  </Slot>
                )}
                {places.map((place) => (
                  <Slot key={place} messageId={history.at(place)?.id} at={at} reveal={reveal}>
                    <OlderMessage message={history.at(place)} actions={actions} onOpen={setTarget} />
                  </Slot>
                ))}
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

/** The places of the messages of a block. */
function placesOf(block: number, count: number): number[] {
  const first = block * perBlock
  return Array.from({ length: Math.min(perBlock, count - first) }, (_, index) => first + index)
}

/** The same list as long as its elements are the same. */
function useSame(keys: readonly string[]): readonly string[] {
  const before = useRef(keys)
  if (before.current.length !== keys.length || keys.some((key, index) => before.current[index] !== key)) before.current = keys
  return before.current
}

interface MessageSlot {
  messageId: string | undefined
  at: string | null
  isWriting?: boolean
  reveal?: (slot: HTMLElement | null) => void
  children: ReactNode
}

/** What is shown of a message, or of one of its parts. */
function Slot({ messageId, at, isWriting = false, reveal, children }: MessageSlot) {
  const isLinked = messageId !== undefined && messageId === at
  const className = `slot${isWriting ? ' is-writing' : ''}${isLinked ? ' is-linked' : ''}`
  return (
    <div ref={isLinked ? reveal : undefined} data-message={messageId} className={className}>
      {children}
    </div>
  )
}

/** Brings the message of the address into view when it is first in the page: its block may be higher than the screen. */
function useRevealed(at: string | null): (slot: HTMLElement | null) => void {
  const revealed = useRef<string>(undefined)
  return useCallback(
    (slot) => {
      if (!slot || at === null || revealed.current === at) return
      revealed.current = at
      slot.scrollIntoView({ block: 'center' })
    },
    [at],
  )
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
  /** How many blocks are before the rows. */
  blocks: number
  history: History
  at: string | null
  virtual: Pick<Virtualizer<HTMLDivElement, Element>, 'scrollToIndex' | 'scrollToEnd'>
}

/** The first rows appear at the end of the thread, or at the message of the link, which may be far before them. */
function usePlaced({ rows, blocks, history, at, virtual }: Placing): void {
  const { count, placeOf } = history
  const isPlaced = useRef(false)
  useLayoutEffect(() => {
    if (isPlaced.current || rows.length === 0) return
    isPlaced.current = true
    const index = at === null ? -1 : rows.findIndex(({ messageId }) => messageId === at)
    if (index >= 0) virtual.scrollToIndex(blocks + index, { align: 'center' })
    else virtual.scrollToEnd()
  }, [rows, blocks, at, virtual])

  // A link to a message before the live view is followed once, when the number of those messages is known.
  const followed = useRef<string>(undefined)
  useEffect(() => {
    if (at === null || count === 0 || followed.current === at) return
    followed.current = at
    void placeOf(at)
      .catch(() => undefined)
      .then((place) => {
        if (place !== undefined && place < count) virtual.scrollToIndex(Math.floor(place / perBlock), { align: 'center' })
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
  const hasUnseen = unseen > 0
  useEffect(() => {
    const element = scroller.current
    // Reading the height makes the browser lay out the page: not in every scroll.
    if (!element || !hasUnseen) return
    const onScroll = () => {
      if (element.scrollHeight - element.scrollTop - element.clientHeight < followPx) setUnseen(0)
    }
    element.addEventListener('scroll', onScroll, { passive: true })
    return () => element.removeEventListener('scroll', onScroll)
  }, [scroller, hasUnseen])
  return unseen
}
