import { report } from '../../harness/side.mjs'
import { peerAgent } from '../../threads/peer.mjs'
import { delivery, model } from './delivery.mjs'

report(await delivery(peerAgent(model)))
