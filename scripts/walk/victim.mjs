// Runs a thread until its tool has begun, says so, and stays until it is killed.
import { desk, target } from './desk.mjs'

const { agent, inTool } = desk(process.argv[2])
agent.sendMessage('Begin.', target)
await inTool()
process.stdout.write('in the tool\n')
setInterval(() => {}, 60_000)
