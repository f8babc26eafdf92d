import { report } from '../../harness/side.mjs'
import { heedAgent } from '../../threads/heed.mjs'
import { model, signals } from './signals.mjs'

report(await signals(await heedAgent(model), (receipt) => receipt.stored))
