import { input } from '../../harness/side.mjs'
import { costOf } from '../../postgres/database.mjs'
import { follow } from '../../threads/follow.mjs'
import { batches } from '../many-threads/batches.mjs'

export { model } from '../many-threads/batches.mjs'

export async function turns({ agent, memory, server }) {
  const target = { threadId: 'cost', resourceId: 'resource' }
  const measured = await batches({ agent, memory })
  const thread = follow(await agent.subscribeToThread(target))
  const cost = await costOf(server, input, async () => {
    const finish = thread.finish()
    agent.sendMessage('Hello', target)
    await finish
  })
  thread.close()
  return { ...measured, ...cost }
}
