import { report } from '../../harness/side.mjs'
import { heedAgent } from '../../threads/heed.mjs'
import { batches, model } from './batches.mjs'

report(await batches(await heedAgent(model)))
