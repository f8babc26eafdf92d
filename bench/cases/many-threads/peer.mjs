import { report } from '../../harness/side.mjs'
import { peerAgent } from '../../threads/peer.mjs'
import { batches, model } from './batches.mjs'

report(await batches(peerAgent(model)))
