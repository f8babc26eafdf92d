import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { isHeedError, type MemoryClient } from 'heed/client'
import type { UIMessage } from './rows.ts'

/** How many messages a request reads, and how many pages are kept. */
const perPage = 100
const maxPages = 40

/** The messages before those of the live view, by their places. Pages are read when they are looked at, in any order. */
export interface History {
  /** How many messages are before the live view; 0 until that is known. */
  count: number
  /** Undefined while it is not loaded; null where the message is not shown. */
  at: (place: number) => UIMessage | null | undefined
  find: (messageId: string) => UIMessage | undefined
  /** These places are visible: they are read before others. */
  want: (first: number, last: number) => void
  /** The place of a message, or undefined where it is not before the live view. */
  placeOf: (messageId: string) => Promise<number | undefined>
}

/** Of a thread that begins with its live view. */
export const noHistory: History = { count: 0, at: () => undefined, find: () => undefined, want: () => {}, placeOf: async () => undefined }

type Page = ReadonlyArray<UIMessage | null>

/** `firstId`: the first message of the live view. Undefined where nothing is before it. */
export function useHistory(memory: MemoryClient, threadId: string, firstId: string | undefined): History {
  const [count, setCount] = useState(0)
  const [pages, setPages] = useState<ReadonlyMap<number, Page>>(new Map())
  const wanted = useRef<readonly number[]>([])
  const loaded = useRef(pages)
  loaded.current = pages
  const isLoading = useRef(false)

  useEffect(() => {
    let isCurrent = true
    if (firstId === undefined) setCount(0)
    else placeIn(memory, threadId, firstId).then((place) => isCurrent && place !== undefined && setCount(place), () => {})
    return () => {
      isCurrent = false
    }
  }, [memory, threadId, firstId])

  /** One request at a time, each for the page that is looked at then: a fast scroll skips those that it passed. */
  const load = useCallback(async () => {
    if (isLoading.current) return
    isLoading.current = true
    try {
      for (;;) {
        const next = wanted.current.find((page) => !loaded.current.has(page))
        if (next === undefined) return
        const { messages, uiMessages } = await memory.seekMessages({ threadId, at: next * perPage, perPage })
        const shown = new Map(uiMessages.map((message) => [message.id, message]))
        const kept = [...loaded.current].filter(([page]) => wanted.current.includes(page) || Math.abs(page - next) < maxPages / 2)
        const page: Page = messages.map(({ id }) => shown.get(id) ?? null)
        loaded.current = new Map([...kept.slice(-maxPages), [next, page]])
        setPages(loaded.current)
      }
    } catch {
      // The places stay empty. They are asked for again when they are next looked at.
    } finally {
      isLoading.current = false
    }
  }, [memory, threadId])

  const want = useCallback(
    (first: number, last: number) => {
      const from = Math.floor(first / perPage)
      wanted.current = Array.from({ length: Math.floor(last / perPage) - from + 1 }, (_, index) => from + index)
      void load()
    },
    [load],
  )
  const placeOf = useCallback((messageId: string) => placeIn(memory, threadId, messageId), [memory, threadId])
  return useMemo(
    () => ({
      count,
      at: (place) => pages.get(Math.floor(place / perPage))?.[place % perPage],
      find: (messageId) => [...pages.values()].flat().find((message) => message?.id === messageId) ?? undefined,
      want,
      placeOf,
    }),
    [count, pages, want, placeOf],
  )
}

async function placeIn(memory: MemoryClient, threadId: string, messageId: string): Promise<number | undefined> {
  try {
    const { messages, first } = await memory.seekMessages({ threadId, around: messageId, perPage: 1 })
    return messages[0]?.id === messageId ? first : undefined
  } catch (error) {
    if (isHeedError(error) && (error.code === 'message_not_found' || error.code === 'thread_not_found')) return undefined
    throw error
  }
}
