import { input, perRun, report } from '../../harness/side.mjs'
import { turnOf } from './turn.mjs'

report(await perRun(input, await turnOf({ constant: true })))
