import { useCallback, useEffect, useRef, useState } from 'react'

export interface Query<T> {
  /** Stays while newer data is read. */
  data: T | undefined
  error: unknown
  isLoading: boolean
  reload: () => void
}

interface QueryOptions<T> {
  /** Undefined, also as a result for the present data: not by time. */
  everyMs?: number | ((data: T | undefined) => number | undefined) | undefined
  version?: unknown
}

/** Reads when the key or the version changes, on `reload()`, and every `everyMs` while the page is visible. */
export function useQuery<T>(key: string | null, read: () => Promise<T>, { everyMs, version }: QueryOptions<T> = {}): Query<T> {
  const [state, setState] = useState<{ key: string | null; data?: T; error?: unknown }>({ key: null })
  const [count, setCount] = useState(0)
  const reader = useRef(read)
  reader.current = read
  const reload = useCallback(() => setCount((before) => before + 1), [])

  useEffect(() => {
    if (key === null) return
    let isCurrent = true
    reader.current().then(
      (data) => isCurrent && setState({ key, data }),
      (error: unknown) => isCurrent && setState((before) => ({ ...(before.key === key ? before : {}), key, error })),
    )
    return () => {
      isCurrent = false
    }
  }, [key, count, version])

  const { data, error }: typeof state = state.key === key ? state : { key }
  const interval = typeof everyMs === 'function' ? everyMs(data) : everyMs
  useEffect(() => {
    if (key === null || interval === undefined) return
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') reload()
    }, interval)
    return () => clearInterval(timer)
  }, [key, interval, reload])

  return { data, error, isLoading: key !== null && data === undefined && error === undefined, reload }
}

/** An action of the user: whether it is being done, and why it failed. */
export function useAction<Args extends unknown[]>(
  act: (...args: Args) => Promise<unknown>,
): {
  run: (...args: Args) => Promise<boolean>
  isBusy: boolean
  error: unknown
} {
  const [state, setState] = useState<{ isBusy: boolean; error?: unknown }>({ isBusy: false })
  const latest = useRef(act)
  latest.current = act
  const run = useCallback(async (...args: Args) => {
    setState({ isBusy: true })
    try {
      await latest.current(...args)
      setState({ isBusy: false })
      return true
    } catch (error) {
      setState({ isBusy: false, error })
      return false
    }
  }, [])
  return { run, isBusy: state.isBusy, error: state.error }
}
