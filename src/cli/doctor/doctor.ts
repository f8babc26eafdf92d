import { newId } from '../../base/ids.ts'
import type { Bus } from '../../bus/contract.ts'
import { namespaceOf, threadStoreOf } from '../../store/contract/storage.ts'
import type { ThreadStore } from '../../store/contract/threads.ts'
import { findUserFile, loadEnvironment, loadUserModule } from '../serve/user-module.ts'
import { exitCodes, wrongUsage, type ExitCode } from '../shell/failure.ts'
import type { Output } from '../shell/output.ts'
import { fail, ok, reasonOf, report, warn, type Finding } from './finding.ts'
import { checkRedis } from './redis.ts'
import { checkStorage } from './storage.ts'

export interface DoctorArguments {
  file: string | undefined
  url: string | undefined
  redis: string | undefined
  envFile: string | undefined
}

interface Deployment {
  store: ThreadStore
  bus: Bus | undefined
}

/** Checks a deployment and prints what it found. */
export async function doctor(args: DoctorArguments, output: Output): Promise<ExitCode> {
  loadEnvironment(args.envFile)
  const deployment = await load(args)
  const findings: Finding[] = [ok('node', `Node ${process.versions.node}`)]
  findings.push(...(await checkStorage(deployment.store)), ...(await checkBus(deployment)))
  const hasProblem = findings.some(({ status }) => status === 'fail')
  output.answer(report(findings), { type: 'doctor', ok: !hasProblem, findings })
  return hasProblem ? exitCodes.problems : exitCodes.done
}

async function load({ file, url, redis }: DoctorArguments): Promise<Deployment> {
  if (file !== undefined && url !== undefined) throw wrongUsage('name a file or --url, not both.')
  if (redis !== undefined && url === undefined) throw wrongUsage('--redis belongs to --url: the Heed of a file has its bus.')
  if (url === undefined) {
    const { heed } = await loadUserModule(findUserFile(file))
    return { store: await threadStoreOf(await heed.sites.of().storage()), bus: heed.sites.bus }
  }
  const store = await storeOf(url)
  if (redis === undefined) return { store, bus: undefined }
  const { RedisBus } = await import('../../bus/redis/index.ts')
  return { store, bus: new RedisBus({ url: redis }) }
}

async function storeOf(url: string): Promise<ThreadStore> {
  if (/^postgres(?:ql)?:/.test(url)) {
    const { PostgresStore } = await import('../../store/postgres/index.ts')
    return new PostgresStore({ connectionString: url })
  }
  const { LibSQLStore } = await import('../../store/sqlite/index.ts')
  return new LibSQLStore({ url })
}

/** Joins the processes of the storage for a moment. Says nothing to them. */
async function checkBus({ store, bus: given }: Deployment): Promise<Finding[]> {
  const bus = given ?? store.bus?.()
  if (!bus) return [warn(
    'bus', 'Processes on this storage are not connected.',
    'Pass a bus if there are several: new Heed({ bus: new RedisBus({ url }) })',
  )]
  const found = await checkRedis(bus)
  if (found.some(({ status }) => status === 'fail')) return found
  // A file's own bus has a folder beside it, which is not made here.
  if (!given) return found
  let failure: unknown
  const handler = { onMessage() {}, onLoss() {}, onDisconnect: (error: unknown) => void (failure = error), wantsLowLatency: () => false }
  try {
    const connection = await bus.connect({ namespace: namespaceOf(store), id: `doctor-${newId()}`, handler })
    const since = performance.now()
    await connection.flush()
    await connection.poll()
    const ms = Math.ceil(performance.now() - since)
    const { hasPeers } = connection
    await connection.close()
    if (failure !== undefined) return [...found, fail(
      'bus', `The bus can not be reached: ${reasonOf(failure)}`,
      'Check its address, the credentials and the network. Meanwhile sweeps find the work.',
    )]
    if (ms > 100) found.push(warn(
      'bus', `The bus answered after ${ms} ms.`,
      'Runs wait for it before they begin: move it closer to the processes.',
    ))
    else found.push(ok('bus', 'The bus answers.'))
    found.push(hasPeers ? ok('peers', 'Other processes are connected to it.') : warn(
      'peers', 'No other process is connected to it.',
      'Start one, or check that all have the same keyPrefix and the same namespace of their storage.',
    ))
  } catch (error) {
    found.push(fail('bus', `The bus can not be used: ${reasonOf(error)}`, 'Correct its options, or install its package.'))
  }
  return found
}
