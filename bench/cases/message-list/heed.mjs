import { importHeed, report } from '../../harness/side.mjs'
import { conversion } from './messages.mjs'

const { MessageList } = await importHeed()

report(await conversion((messages) => new MessageList().add(messages, 'memory').get.all.prompt()))
