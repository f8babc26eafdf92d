import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  chooseRoute, enteringSignals, nextSignalState, nextThreadStatus, signalStates, signalTransitions, startingSignals, threadStatuses,
  threadTransitions,
} from './machine.ts'
import type {
  ActiveBehavior, IdleBehavior, Route, SendMode, SignalEvent, SignalState, ThreadEvent, ThreadStatus, Waiting,
} from './machine.ts'

const threadEvents = ['wake', 'suspend', 'resume', 'continue', 'release', 'take-over'] as const satisfies ThreadEvent[]
const signalEvents = ['take', 'consume', 'reject', 'cancel'] as const satisfies SignalEvent[]
const actives = ['deliver', 'interrupt', 'persist', 'discard'] as const satisfies ActiveBehavior[]
const idles = ['wake', 'persist', 'discard'] as const satisfies IdleBehavior[]

describe('the status of a thread', () => {
  it('is a known status after any order of events; an event that is not possible changes nothing', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...threadEvents)), (events) => {
        let status: ThreadStatus = 'idle'
        for (const event of events) {
          const next: ThreadStatus | undefined = nextThreadStatus(status, event)
          expect(next).toBe(threadTransitions[status][event])
          status = next ?? status
          expect(threadStatuses).toContain(status)
        }
      }),
    )
  })

  it('can become every other status from every status', () => {
    const reached = (from: ThreadStatus) => closure(from, (status) => Object.values(threadTransitions[status]))
    for (const status of threadStatuses) expect(reached(status)).toEqual(new Set(threadStatuses))
  })

  it('lets a run begin only on an idle thread', () => {
    expect(threadStatuses.filter((status) => nextThreadStatus(status, 'wake'))).toEqual(['idle'])
    expect(threadStatuses.filter((status) => nextThreadStatus(status, 'suspend'))).toEqual(['running'])
    expect(threadStatuses.filter((status) => nextThreadStatus(status, 'resume'))).toEqual(['suspended'])
  })

  it('has a transition for every event', () => {
    const known = new Set(threadStatuses.flatMap((status) => Object.keys(threadTransitions[status])))
    expect(known).toEqual(new Set(threadEvents))
  })
})

describe('the state of a signal', () => {
  it('is a known state after any order of events; a final state never changes', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...signalEvents)), (events) => {
        let state: SignalState = 'pending'
        let ended = false
        for (const event of events) {
          const next: SignalState | undefined = nextSignalState(state, event)
          if (ended) expect(next).toBeUndefined()
          state = next ?? state
          expect(signalStates).toContain(state)
          ended = Object.keys(signalTransitions[state]).length === 0
        }
      }),
    )
  })

  it('can become final from pending and from taken', () => {
    const isFinal = (state: SignalState) => Object.keys(signalTransitions[state]).length === 0
    const ends = (state: SignalState) => [...closure(state, (from) => Object.values(signalTransitions[from]))].filter(isFinal)
    expect(ends('pending').toSorted()).toEqual(['cancelled', 'consumed', 'rejected'])
    expect(ends('taken').toSorted()).toEqual(['consumed', 'rejected'])
  })

  it('never returns to an earlier state: a taken signal cannot be cancelled or taken again', () => {
    expect(nextSignalState('taken', 'cancel')).toBeUndefined()
    expect(nextSignalState('taken', 'take')).toBeUndefined()
  })
})

describe('chooseRoute', () => {
  /** Written in full, so that a change of any cell is visible. Columns: the thread is idle, active with the agent, active with another. */
  const table: Record<SendMode, Record<ActiveBehavior, Record<IdleBehavior, [Route, Route, Route]>>> = {
    now: {
      deliver: { wake: ['wake', 'deliver', 'queue'], persist: ['persist', 'deliver', 'queue'], discard: ['discard', 'deliver', 'queue'] },
      interrupt: {
        wake: ['wake', 'interrupt', 'queue'],
        persist: ['persist', 'interrupt', 'queue'],
        discard: ['discard', 'interrupt', 'queue'],
      },
      persist: {
        wake: ['wake', 'persist', 'persist'],
        persist: ['persist', 'persist', 'persist'],
        discard: ['discard', 'persist', 'persist'],
      },
      discard: {
        wake: ['wake', 'discard', 'discard'],
        persist: ['persist', 'discard', 'discard'],
        discard: ['discard', 'discard', 'discard'],
      },
    },
    queue: {
      deliver: { wake: ['wake', 'queue', 'queue'], persist: ['persist', 'queue', 'queue'], discard: ['discard', 'queue', 'queue'] },
      interrupt: { wake: ['wake', 'queue', 'queue'], persist: ['persist', 'queue', 'queue'], discard: ['discard', 'queue', 'queue'] },
      persist: {
        wake: ['wake', 'persist', 'persist'],
        persist: ['persist', 'persist', 'persist'],
        discard: ['discard', 'persist', 'persist'],
      },
      discard: {
        wake: ['wake', 'discard', 'discard'],
        persist: ['persist', 'discard', 'discard'],
        discard: ['discard', 'discard', 'discard'],
      },
    },
  }

  const cells = (['now', 'queue'] as const).flatMap((mode) =>
    actives.flatMap((ifActive) => idles.map((ifIdle) => ({ mode, ifActive, ifIdle }))),
  )

  it.each(cells)('$mode, $ifActive, $ifIdle', ({ mode, ifActive, ifIdle }) => {
    const request = { mode, agentId: 'a', ifActive, ifIdle }
    const [idle, own, foreign] = table[mode][ifActive][ifIdle]
    expect(chooseRoute({ status: 'idle' }, request)).toBe(idle)
    for (const status of ['running', 'suspended'] as const) {
      expect(chooseRoute({ status, agentId: 'a' }, request)).toBe(own)
      expect(chooseRoute({ status, agentId: 'b' }, request)).toBe(foreign)
      expect(chooseRoute({ status }, request)).toBe(foreign)
    }
  })
})

describe('pending signals', () => {
  const rows = fc
    .array(fc.record({ agentId: fc.constantFrom('a', 'b', 'c'), kind: fc.constantFrom<Waiting['kind']>('enter', 'turn') }))
    .map((drawn) => drawn.map(({ agentId, kind }, index): Waiting => ({ id: `s${index}`, agentId, kind })))

  it('start runs: each signal once, none dropped, in order per agent and kind, a turn alone', () => {
    fc.assert(
      fc.property(rows, (waiting) => {
        const runs: Waiting[][] = []
        for (let rest: readonly Waiting[] = waiting; rest.length > 0; ) {
          const run = startingSignals(rest)
          expect(run.length).toBeGreaterThan(0)
          runs.push(run)
          const taken = new Set(run)
          rest = rest.filter((row) => !taken.has(row))
        }
        expect(runs.flat().length).toBe(waiting.length)
        expect(new Set(runs.flat())).toEqual(new Set(waiting))
        for (const run of runs) {
          expect(new Set(run.map((row) => row.agentId)).size).toBe(1)
          if (run.some((row) => row.kind === 'turn')) expect(run.length).toBe(1)
        }
        for (const kind of ['enter', 'turn']) {
          for (const agentId of ['a', 'b', 'c']) {
            const of = (list: readonly Waiting[]) => list.filter((row) => row.kind === kind && row.agentId === agentId)
            expect(of(runs.flat())).toEqual(of(waiting))
          }
        }
        // Turns keep their order among all agents.
        expect(runs.flat().filter((row) => row.kind === 'turn')).toEqual(waiting.filter((row) => row.kind === 'turn'))
      }),
    )
  })

  it('enter only runs of their own agent: all of them, in order', () => {
    fc.assert(
      fc.property(rows, fc.constantFrom('a', 'b', 'c'), (waiting, agentId) => {
        const enters = enteringSignals(waiting, agentId)
        expect(enters).toEqual(waiting.filter((row) => row.kind === 'enter' && row.agentId === agentId))
      }),
    )
  })

  it('that may enter a run are taken before queued signals', () => {
    const waiting: Waiting[] = [{ id: 'q', agentId: 'a', kind: 'turn' }, { id: 'm', agentId: 'a', kind: 'enter' }]
    expect(startingSignals(waiting).map((row) => row.id)).toEqual(['m'])
    expect(startingSignals([])).toEqual([])
    const several: Waiting[] = [...waiting, { id: 'other', agentId: 'b', kind: 'enter' }, { id: 'n', agentId: 'a', kind: 'enter' }]
    expect(startingSignals(several).map((row) => row.id)).toEqual(['m', 'n'])
  })
})

function closure<State>(from: State, next: (state: State) => State[]): Set<State> {
  const seen = new Set([from])
  for (const state of seen) for (const to of next(state)) seen.add(to)
  return seen
}
