import type { AgentClient, HeedClient, ThreadRun } from 'heed/client'

export type ListedSignal = Awaited<ReturnType<AgentClient['listSignals']>>['signals'][number]
export type ServerProcess = Awaited<ReturnType<HeedClient['listProcesses']>>['processes'][number]

/** A time in which a process had the lease of the thread, for one run. */
export interface Lease {
  owner: string
  epoch: number
  runId: string
  from: number
  /** The last sign of the holder: a step, a heartbeat, or the end of the run. */
  to: number
  /** `lost`: another process took the run over at `until`, without a release by this one. */
  end: 'ended' | 'released' | 'lost' | 'held'
  /** When the next process took the run over. */
  until?: number
  steps: ThreadRun['steps']
}

interface Sources {
  signals: readonly ListedSignal[]
  processes: readonly ServerProcess[]
  now: number
}

/** The leases under which the runs were done, oldest first: by the epochs of their takeovers, steps and signals. */
export function leasesOf(runs: readonly ThreadRun[], sources: Sources): Lease[] {
  return runs.flatMap((run) => leasesOfRun(run, sources)).toSorted((one, other) => one.from - other.from || one.epoch - other.epoch)
}

function leasesOfRun(run: ThreadRun, { signals, processes, now }: Sources): Lease[] {
  const owners = new Map<number, string>()
  for (const { runId, epoch, owner } of signals) {
    if (runId === run.runId && epoch !== undefined && owner !== undefined) owners.set(epoch, owner)
  }
  for (const { epoch, owner } of run.steps) owners.set(epoch, owner)
  for (const { epoch, to } of run.takeovers) owners.set(epoch, to)
  const epochs = [...owners.keys()].toSorted((one, other) => one - other)
  return epochs.map((epoch, index): Lease => {
    const owner = owners.get(epoch) ?? ''
    const steps = run.steps.filter((step) => step.epoch === epoch)
    const next = run.takeovers.find((takeover) => takeover.epoch === epochs[index + 1])
    const taken = run.takeovers.find((takeover) => takeover.epoch === epoch)
    const from = index > 0 && taken ? ms(taken.at) : ms(run.startedAt)
    const base = { owner, epoch, runId: run.runId, from, steps }
    if (!next) {
      const endedAt = run.endedAt ?? (run.status === 'suspended' ? run.suspendedAt : undefined)
      if (endedAt !== undefined) return { ...base, to: Math.max(from, ms(endedAt)), end: run.status === 'suspended' ? 'released' : 'ended' }
      return { ...base, to: Math.max(from, now), end: 'held' }
    }
    const until = ms(next.at)
    const process = processes.find((one) => one.owner === owner)
    const seen = [...steps.map(({ finishedAt }) => ms(finishedAt)), ...(process ? [ms(process.seenAt)] : [])]
    const signs = seen.filter((time) => time <= until)
    return { ...base, to: Math.max(from, ...signs), end: next.from === undefined ? 'released' : 'lost', until }
  })
}

export function ms(time: string): number {
  return new Date(time).getTime()
}
