import { rmSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { Chunk, ThreadSnapshot } from '../../src/index.ts'
import { isType, soon } from '../thread/said.ts'
import { sweepingMember } from './cluster.ts'
import { newFile } from '../new-file.ts'

const thread = { resourceId: 'user-1', threadId: 'thread-1' }

describe('processes that can\'t reach each other', () => {
  it('[B1.7] say so, find by the sweep what can be found, refuse by name what can\'t, and go on when they can', async () => {
    const file = newFile()
    // The folder can't be made: a file has its name.
    writeFileSync(`${file}-bus`, '')
    const [a, b] = await Promise.all([sweepingMember(file), sweepingMember(file)])
    for (const each of [a, b]) await soon(async () => (await each.ask('warnings')).map(({ code }) => code)).toEqual(['bus_failed'])

    await b.ask('subscribe', 'log', thread)
    const { runId } = await a.ask('send', 'one hang', thread)
    await soon(async () => (await a.ask('activeRun', thread))?.status).toBe('running')
    await expect(b.ask('abortRun', thread)).rejects.toMatchObject({ code: 'bus_failed' })

    const { id } = await b.ask('send', 'two say 2', { ...thread, ifActive: { behavior: 'interrupt' } })
    expect(await b.ask('outcome', id)).toEqual({ action: 'delivered', runId, step: 1 })
    // Snapshots have the messages.
    await soon(async () => {
      const seen: Chunk[] = (await b.ask('log', 'log')) ?? []
      const snapshots = seen.filter(isType('data-thread-snapshot')).map((chunk) => ('data' in chunk ? (chunk.data as ThreadSnapshot) : undefined))
      return JSON.stringify(snapshots.at(-1)?.messages)
    }).toContain('two-1')

    rmSync(`${file}-bus`)
    for (const each of [a, b]) await soon(async () => (await each.ask('warnings')).at(-1)?.message).toBe('other processes on this store can be reached again')
    const last = await a.ask('send', 'three hang', thread)
    await soon(async () => (await b.ask('activeRun', thread))?.status).toBe('running')
    expect(await b.ask('abortRun', thread)).toEqual({ aborted: true, runId: last.runId })
  })
})
