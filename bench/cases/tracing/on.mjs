import { expect, input, perRun, report } from '../../harness/side.mjs'
import { registerSdk } from './sdk.mjs'
import { turnOf } from './turn.mjs'

const ended = registerSdk()
const sample = await perRun(input, await turnOf())
// A process that was held up for longer than its lease takes its runs up again.
for (const [name, count] of [['invoke_agent weather-agent', 1], ['chat instant', 2], ['execute_tool weather', 1]]) expect(`enough of ${name}`, ended.get(name) >= count * (input.warmup + input.runs), true)
report(sample)
