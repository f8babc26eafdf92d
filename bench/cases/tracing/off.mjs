import { expect, input, perRun, report } from '../../harness/side.mjs'
import { key } from './sdk.mjs'
import { turnOf } from './turn.mjs'

const turn = await turnOf()
const sample = await perRun(input, turn)

// All that a run does for traces where none are made: so many looks for an SDK, each of which costs so many nanoseconds.
let looks = 0
Object.defineProperty(globalThis, key, { configurable: true, get: () => void looks++ })
for (let index = 0; index < 100; index++) await turn()
delete globalThis[key]
looks /= 100
const many = 5_000_000
let found = 0
const began = performance.now()
for (let index = 0; index < many; index++) if (globalThis[key]) found++
const nanoseconds = ((performance.now() - began) / many) * 1e6
expect('SDKs', found, 0)
report({ ...sample, looks, 'nanoseconds a look': nanoseconds, 'looks over a run': (looks * nanoseconds) / 1e6 / sample.cpu })
