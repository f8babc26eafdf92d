import type { AgentClient, OverWire } from '../../client/index.ts'
import type { MarkedStatus, NotificationRecord, NotificationStatus } from '../../store/contract/notifications.ts'
import { wholeNumber } from '../shell/arguments.ts'
import { exitCodes, wrongUsage, type ExitCode } from '../shell/failure.ts'
import type { Output } from '../shell/output.ts'
import { explained, talkTo, withResource, type NamedServer } from './server.ts'

export interface InboxArguments extends NamedServer {
  thread: string
  status: string[]
  priority: string[]
  limit: string | undefined
  show: string | undefined
  seen: string[]
  dismiss: string[]
  archive: string[]
  retry: string[]
}

type Listed = OverWire<NotificationRecord>
type Scope = { threadId: string; resourceId?: string }

/** Lists the notifications of a thread, or marks some. */
export async function inbox(args: InboxArguments, output: Output): Promise<ExitCode> {
  const asked = [['seen', args.seen], ['dismissed', args.dismiss], ['archived', args.archive]] as const
  const marks = asked.filter(([, ids]) => ids.length > 0)
  const actions = marks.length + (args.retry.length > 0 ? 1 : 0) + (args.show === undefined ? 0 : 1)
  if (actions > 1) throw wrongUsage('one call does one thing: --show, --seen, --dismiss, --archive or --retry.')
  const limit = args.limit === undefined ? 100 : wholeNumber('--limit', args.limit, 1, 1_000)
  const talk = await talkTo(args, args.thread)
  try {
    return await withResource(talk, async (resource) => {
      const scope = { threadId: args.thread, ...resource }
      const [mark] = marks
      if (mark) return markAs(talk.agent, scope, mark[0], mark[1], output)
      if (args.retry.length > 0) return retry(talk.agent, scope, args.retry, output)
      if (args.show !== undefined) {
        const record = await talk.agent.notifications.get({ ...scope, id: args.show })
        output.answer(JSON.stringify(record, null, 2), { type: 'notification', ...record })
        return exitCodes.done
      }
      return list(talk.agent, scope, { ...args, limit }, output)
    })
  } catch (error) {
    throw explained(error)
  }
}

interface Wanted {
  status: string[]
  priority: string[]
  limit: number
}

async function list(agent: AgentClient, scope: Scope, { status, priority, limit }: Wanted, output: Output): Promise<ExitCode> {
  const { notifications, more, counts } = await agent.notifications.list({
    ...scope, limit,
    ...(status.length > 0 ? { status: status as NotificationStatus[] } : {}),
    ...(priority.length > 0 ? { priority: priority as Array<NotificationRecord['priority']> } : {}),
  })
  if (output.isJSON) {
    output.answer('', { type: 'inbox', thread: scope.threadId, notifications, more, counts })
    return exitCodes.done
  }
  for (const one of notifications) output.write(`${lineOf(one)}\n`)
  const counted = Object.entries(counts).map(([name, count]) => `${count} ${name}`).join(', ')
  const shown = more ? `; the newest ${notifications.length} are shown` : ''
  output.note(counted === '' ? `the inbox of ${scope.threadId} is empty` : counted + shown)
  return exitCodes.done
}

function lineOf({ id, priority, status, source, kind, summary }: Listed): string {
  return `${priority.padEnd(6)}  ${status.padEnd(9)}  ${source}/${kind}  ${summary}  (${id})`
}

async function markAs(agent: AgentClient, scope: Scope, status: MarkedStatus, ids: string[], output: Output): Promise<ExitCode> {
  const changed = (await agent.notifications.mark({ ...scope, ids, status })).map(({ id }) => id)
  output.answer(`${status}: ${changed.join(' ') || 'none of them changed'}`, { type: 'marked', status, ids: changed })
  return changed.length > 0 ? exitCodes.done : exitCodes.notAccepted
}

async function retry(agent: AgentClient, scope: Scope, ids: string[], output: Output): Promise<ExitCode> {
  const retried = await agent.notifications.retry({ ...scope, ids })
  output.answer(`retried: ${retried}`, { type: 'retried', retried })
  return retried > 0 ? exitCodes.done : exitCodes.notAccepted
}
