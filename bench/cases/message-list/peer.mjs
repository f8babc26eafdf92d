import { MessageList } from '@mastra/core/agent/message-list'
import { report } from '../../harness/side.mjs'
import { conversion } from './messages.mjs'

report(await conversion((messages) => {
  const list = new MessageList({ threadId: 'thread', resourceId: 'resource' })
  return list.add(messages, 'memory').get.all.aiV7.llmPrompt()
}))
