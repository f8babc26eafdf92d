import type { Bus } from '../../bus/contract.ts'
import { fail, ok, reasonOf, warn, type Finding } from './finding.ts'

/** The part of a `RedisBus` that tells of its server. */
interface RedisFacts {
  facts(): Promise<Record<string, string>>
}

/** The oldest version with the commands that the bus uses. Valkey reports a version of Redis that it is compatible with. */
const oldest = [6, 2] as const

/** Checks the server of a bus on Redis; nothing of other buses. */
export async function checkRedis(bus: Bus): Promise<Finding[]> {
  if (!isOnRedis(bus)) return []
  let facts: Record<string, string>
  try {
    facts = await bus.facts()
  } catch (error) {
    return [fail(
      'redis', `Redis can not be reached: ${reasonOf(error)}`,
      'Check its address, the credentials and the network. Meanwhile sweeps find the work.',
    )]
  }
  const { redis_version: version = '0', role = '', maxmemory = '0', used_memory: used = '0' } = facts
  const { maxmemory_policy: policy = 'noeviction' } = facts
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const found: Finding[] = []
  if (major < oldest[0] || (major === oldest[0] && minor < oldest[1])) {
    return [fail('redis', `Redis ${version} is too old.`, `Install ${oldest.join('.')} or newer, or Valkey 7.2 or newer.`)]
  }
  found.push(ok('redis', `Redis ${version} answers.`))
  if (role !== '' && role !== 'master') found.push(fail(
    'redis-role', 'This Redis is a replica, which can not be written.',
    'Use the address of its primary.',
  ))
  if (Number(maxmemory) > 0 && policy.startsWith('allkeys-')) {
    found.push(warn(
      'redis-policy', `maxmemory-policy is ${policy}: Redis may remove the inboxes of processes.`,
      'CONFIG SET maxmemory-policy noeviction, or a Redis of its own for Heed.',
    ))
  }
  if (Number(maxmemory) > 0 && Number(used) > 0.9 * Number(maxmemory)) {
    found.push(warn(
      'redis-memory', 'Redis uses more than 90 % of its maxmemory.',
      'Give it more: without memory the bus is silent, and sweeps find the work.',
    ))
  }
  return found
}

function isOnRedis(bus: object): bus is RedisFacts {
  return 'facts' in bus && typeof bus.facts === 'function'
}
