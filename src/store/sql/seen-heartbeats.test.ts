import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { SeenHeartbeats } from './seen-heartbeats.ts'

const length = 10_000
const hour = 3_600_000

describe('[R1.11] what a process knows about the silence of another', () => {
  let here = 0
  let server = 1_000_000_000
  beforeEach(() => {
    here = 0
    server = 1_000_000_000
    vi.spyOn(performance, 'now').mockImplementation(() => here)
  })
  afterEach(() => {
    vi.restoreAllMocks()
  })
  const pass = (ms: number) => {
    here += ms
    server += ms
  }
  const written = () => ({ until: server + length, length })
  const silence = (heartbeats: SeenHeartbeats, beat: { until: number; length: number }) => heartbeats.silentFor('p', { ...beat, now: server })

  it('begins when it first sees a heartbeat that was written before it looked', () => {
    const heartbeats = new SeenHeartbeats()
    const beat = written()
    pass(hour)
    expect(silence(heartbeats, beat)).toBe(0)
    pass(4_000)
    expect(silence(heartbeats, beat)).toBe(4_000)
  })

  it('begins with a heartbeat that was written while it looked, however late it sees that', () => {
    const heartbeats = new SeenHeartbeats()
    silence(heartbeats, written())
    pass(3_000)
    const beat = written()
    pass(9_000)
    expect(silence(heartbeats, beat)).toBe(9_000)
    pass(2_000)
    expect(silence(heartbeats, beat)).toBe(11_000)
  })

  it.each([hour, -hour])('begins anew when the clock of the server jumps by %i ms, and again with the next heartbeat', (jump) => {
    const heartbeats = new SeenHeartbeats()
    silence(heartbeats, written())
    pass(1_000)
    const beat = written()
    pass(2_000)
    server += jump
    expect(silence(heartbeats, beat)).toBe(0)
    pass(6_000)
    expect(silence(heartbeats, beat)).toBe(6_000)
    const next = written()
    pass(5_000)
    expect(silence(heartbeats, next)).toBe(5_000)
  })

  it('counts an answer that comes some time late, and no second of a heartbeat of the time to come', () => {
    const heartbeats = new SeenHeartbeats()
    silence(heartbeats, written())
    pass(1_000)
    const beat = written()
    pass(7_000)
    here += 1_500
    expect(silence(heartbeats, beat)).toBe(7_000)
    expect(silence(heartbeats, { until: server + 2 * length, length })).toBe(0)
  })
})
