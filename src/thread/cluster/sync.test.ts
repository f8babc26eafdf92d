import { expect, it } from 'vitest'
import type { ThreadRow } from '../../store/contract/threads.ts'
import { LiveThread } from '../stream/live.ts'
import { storeIsAhead } from './sync.ts'
import type { ThreadRuntime } from '../runtime/runtime.ts'

it('[W1.2] a process that was paused and has a host of an older epoch syncs with the present runner', () => {
  const thread = { id: 'thread', status: 'running', owner: 'another', epoch: 10 } as ThreadRow
  const holding = (epoch: number | undefined) => ({ owner: 'this', hostOf: () => (epoch === undefined ? undefined : { fence: { epoch } }) }) as unknown as ThreadRuntime
  const live = new LiveThread('thread')
  live.beginEpoch(9)
  expect(storeIsAhead(holding(9), live, thread, [])).toBe(true)
  expect(storeIsAhead(holding(undefined), live, thread, [])).toBe(true)
  expect(storeIsAhead(holding(10), live, thread, [])).toBe(false)
})
