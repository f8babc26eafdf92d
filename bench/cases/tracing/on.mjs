import { expect, input, perRun, report } from '../../harness/side.mjs'
import { registerSdk } from './sdk.mjs'
import { turnOf } from './turn.mjs'

const ended = registerSdk()
const sample = await perRun(input, await turnOf())
expect('runs', ended.get('invoke_agent weather-agent'), input.warmup + input.runs)
expect('chats', ended.get('chat instant'), 2 * (input.warmup + input.runs))
expect('tools', ended.get('execute_tool weather'), input.warmup + input.runs)
report(sample)
