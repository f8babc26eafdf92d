import { expect, it } from 'vitest'
import type { PostgresFacts } from '../../store/postgres/facts.ts'
import { checkPostgres } from './postgres.ts'

const healthy: PostgresFacts = {
  version: '18.4', versionNumber: 180_004, isReplica: false, isReadOnly: false, schema: { version: 1, codeFrom: 1 }, known: 1, missingRights: [], skewMs: 0,
  connections: { most: 100, used: 1 }, oldestTransaction: 0, synchronousCommit: 'on', synchronousStandbys: '', replicas: 0, fsync: 'on', timeline: '00000001',
  takesBatches: true, roundTripMs: 0.2, commitMs: 0.6, updates: { all: 0, hot: 0 }, waiting: 0, queue: 0, delivers: true,
}

async function wrong(facts: Partial<PostgresFacts>): Promise<string[]> {
  const found = await checkPostgres({ facts: async () => ({ ...healthy, ...facts }), most: 11 }, 'it')
  return found.flatMap(({ check, status, message }) => (status === 'ok' ? [] : [`${check}: ${message}`]))
}

it('[B4.1] reports what a server tells of failovers, speed, locks and updates', async () => {
  expect(await wrong({})).toEqual([])
  expect(await wrong({ timeline: undefined })).toEqual(['timeline: The server does not tell its timeline: a failover that loses commits is not noticed.'])
  expect(await wrong({ replicas: 2 })).toEqual(['standbys: 2 replicas are connected, and no commit waits for one: a failover loses messages that were accepted.'])
  expect(await wrong({ replicas: 2, synchronousStandbys: 'ANY 1 (a, b)' })).toEqual([])
  expect(await wrong({ roundTripMs: 8, commitMs: undefined })).toEqual(['latency: A round trip takes 8.0 ms.'])
  expect(await wrong({ commitMs: 40.2 })).toEqual(['latency: A round trip takes 0.2 ms, and a commit 40.0 ms more.'])
  expect(await wrong({ waiting: 1 })).toEqual(['locks: 1 session has waited for a lock for more than a second.'])
  expect(await wrong({ updates: { all: 20_000, hot: 400 } })).toEqual(['updates: Only 2 % of the updates stay within their page (HOT).'])
  expect(await wrong({ updates: { all: 400, hot: 0 } })).toEqual([])
  const listen = (version: string) => [`listen: PostgreSQL ${version} may reject LISTEN with "could not access status of transaction", until it is restarted.`]
  expect(await wrong({ version: '18.1', versionNumber: 180_001 })).toEqual(listen('18.1'))
  expect(await wrong({ version: '14.20', versionNumber: 140_020 })).toEqual(listen('14.20'))
  for (const versionNumber of [180_002, 170_008, 140_021, 190_000]) expect(await wrong({ versionNumber })).toEqual([])
  expect(await wrong({ takesBatches: false, waiting: 1 })).toEqual(['batches: Statements that are sent together are not answered: this is a pooler that can not be used.'])
})
