import { describe, expect, it } from 'vitest'
import { leasesOf } from '../../studio/timeline/leases.ts'
import { scaleOf } from '../../studio/timeline/scale.ts'

const time = (seconds: number) => new Date(seconds * 1_000).toISOString()
type Run = Parameters<typeof leasesOf>[0][number]
type Step = Run['steps'][number]

const step = (number: number, epoch: number, owner: string, from: number, to: number): Step => ({
  runId: 'r', step: number, epoch, owner, startedAt: time(from), finishedAt: time(to), head: 'h', messages: 1,
})
const run = (change: Partial<Run>): Run => ({
  threadId: 't', resourceId: 'u', runId: 'r', agentId: 'a', status: 'finished', epoch: 1, step: 1, attempts: 1, startedAt: time(100), endedAt: time(160),
  steps: [], takeovers: [], decisions: [], ...change,
})

describe('the timeline of a thread', () => {
  it('[Y3.4] a lost lease ends with the last sign of its process, and the next begins when the run was taken over', () => {
    const lost = run({
      steps: [step(0, 1, 'one', 100, 104), step(1, 3, 'three', 150, 155)],
      takeovers: [
        { epoch: 2, runId: 'r', step: 1, from: 'one', to: 'two', at: time(120) }, { epoch: 3, runId: 'r', step: 1, from: 'two', to: 'three', at: time(140) },
      ],
    })
    const processes = [{ owner: 'one', seenAt: time(110), expiresAt: time(115), end: 'expired' as const, threads: 0 }]
    const leases = leasesOf([lost], { signals: [], processes, now: 200_000 })
    expect(leases.map(({ owner, epoch, from, to, end, until }) => [owner, epoch, from / 1_000, to / 1_000, end, (until ?? 0) / 1_000])).toEqual([
      ['one', 1, 100, 110, 'lost', 120], ['two', 2, 120, 120, 'lost', 140], ['three', 3, 140, 160, 'ended', 0],
    ])
    expect(leases.map(({ steps }) => steps.map((one) => one.step))).toEqual([[0], [], [1]])
  })

  it('[Y3.4] a process that released a run, as for an approval, did not lose it; one that runs holds it until now', () => {
    const { endedAt: _, ...open } = run({ status: 'running', steps: [step(0, 1, 'one', 100, 101)], takeovers: [{ epoch: 2, runId: 'r', step: 1, to: 'two', at: time(130) }] })
    expect(leasesOf([open], { signals: [], processes: [], now: 200_000 }).map(({ owner, to, end }) => [owner, to, end])).toEqual([['one', 101_000, 'released'], ['two', 200_000, 'held']])
    // Before its first step, a run is known by the signal that began it.
    const begun = { id: 's', ord: 1, kind: 'enter' as const, state: 'taken' as const, route: 'wake' as const, agentId: 'a', acceptedAt: time(99), drainedAt: time(100), owner: 'one', epoch: 1, runId: 'r' }
    expect(leasesOf([run({})], { signals: [begun], processes: [], now: 0 }).map(({ owner, end }) => [owner, end])).toEqual([['one', 'ended']])
  })

  it('[Y3.4] long stretches without an event are collapsed, and time goes on in order and back', () => {
    const times = [0, 100, 200, 300, 400, 7_200_000, 7_200_100, 7_200_300]
    const scale = scaleOf(times, { from: 0, to: 7_200_300 })
    expect(scale.gaps).toEqual([{ from: 400, to: 7_200_000 }])
    const places = times.map(scale.x)
    expect(places).toEqual(places.toSorted((one, other) => one - other))
    expect([places[0], places.at(-1)]).toEqual([0, 1])
    expect(scale.x(7_200_000) - scale.x(400)).toBeCloseTo(0.05)
    for (const at of [0, 150, 399, 7_200_050, 7_200_300]) expect(scale.timeAt(scale.x(at))).toBeCloseTo(at, 3)
    expect([scale.x(-5), scale.x(8_000_000)]).toEqual([0, 1])
    expect(scaleOf([0, 50_000], { from: 0, to: 50_000 }).gaps).toEqual([])
    const many = Array.from({ length: 60 }, (_, index) => (index >> 1) * 100_000 + (index & 1))
    expect(scaleOf(many, { from: 0, to: Math.max(...many) }).gaps).toHaveLength(29)
  })
})
